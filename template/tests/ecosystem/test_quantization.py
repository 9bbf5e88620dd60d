"""torchao on the device, without fallbacks, against float64 on the CPU.

The keys of the tables are users' code. docs/features/quantization.md shows them with their errors:
the largest difference from the reference, relative to the reference's largest number.
"""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE
from support import natively, needs
from torch import nn

pytestmark = needs(torch.float32, torch.bfloat16, torch.int8, torch.uint8, torch.int32)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "features" / "quantization.md"

WEIGHTS = {
    "Int8WeightOnlyConfig()": 0.01,
    "Int8WeightOnlyConfig(granularity=PerGroup(32))": 0.01,
    "Int8DynamicActivationInt8WeightConfig()": 0.02,
    "Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32))": 0.12,
    "IntxWeightOnlyConfig(torch.int4, PerGroup(32))": 0.12,
    "Int4WeightOnlyConfig(group_size=32)": 0.12,
    "Float8WeightOnlyConfig()": 0.05,
    "Float8DynamicActivationFloat8WeightConfig(granularity=PerTensor())": 0.06,
    "Float8DynamicActivationFloat8WeightConfig(granularity=PerRow())": 0.06,
    "MXDynamicActivationMXWeightConfig()": 0.06,
    "MXDynamicActivationMXWeightConfig(32, torch.float4_e2m1fn_x2, torch.float4_e2m1fn_x2)": 0.3,
}
TRAINING = {
    "int8_mixed_precision_training(module_swap=True)": 0.01,
    "int8_weight_only_quantized_training()": 0.0001,
    "bitnet_training()": 0.04,
    "QATConfig(Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32)), step='prepare')": 0.001,
    "QATConfig(Int4WeightOnlyConfig(group_size=32), step='prepare')": 0.002,
    "QATConfig(Float8DynamicActivationFloat8WeightConfig(granularity=PerRow()), step='prepare')": 0.005,
    "Float8LinearConfig.from_recipe_name('tensorwise')": 0.001,
    "Float8LinearConfig.from_recipe_name('rowwise')": 0.001,
    "Float8LinearConfig.from_recipe_name('rowwise_with_gw_hp')": 0.001,
}
OPTIMIZERS = {"AdamW8bit": 0.001, "AdamW4bit": 0.1, "AdamWFp8": 0.001}
"""Of torchao.optim, against torch.optim.AdamW."""


def meaning(text: str) -> Any:
    """Evaluate ``text`` with the names of torchao, and those of this backend's integration."""
    names = {"torch": torch}
    for module in (
        "torchao.quantization",
        "torchao.quantization.qat",
        "torchao.float8",
        "torchao.prototype.mx_formats",
        "torchao.prototype.quantized_training",
        f"{PACKAGE}.integrations.torchao",
    ):
        names.update(vars(importlib.import_module(module)))
    return eval(text, names)


def model(dtype: torch.dtype) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).to(dtype)


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    got, wanted = got.detach().cpu().double(), wanted.detach().double()
    return float((got - wanted).abs().max() / wanted.abs().max())


def losses(
    device: str,
    prepare: Callable[[nn.Module], Any] = lambda plain: None,
    optimizer: Any = torch.optim.SGD,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Return the losses of four steps."""
    trained = model(dtype).to(device)
    inputs, targets = torch.randn(2, 16, 256).to(dtype).to(device)
    prepare(trained)
    stepper = optimizer(trained.parameters(), lr=0.01)
    out = []
    for _ in range(4):
        loss = (trained(inputs).float() - targets.float()).square().mean()
        stepper.zero_grad()
        loss.backward()
        stepper.step()
        out.append(loss.detach().cpu())
    return torch.stack(out)


@pytest.mark.ecosystem("torchao")
@pytest.mark.parametrize("text", WEIGHTS)
@torch.no_grad()
def test_torchao_weight_configs(text: str) -> None:
    from torchao.quantization import quantize_

    plain = model(torch.bfloat16).eval()
    inputs = torch.randn(2, 4, 256, dtype=torch.bfloat16)
    wanted = copy.deepcopy(plain).double()(inputs.double())
    with natively():
        there = plain.to(DEVICE)
        quantize_(there, meaning(text))
        got = there(inputs.to(DEVICE))
    assert got.dtype is torch.bfloat16
    assert type(there[0].weight) is not nn.Parameter
    assert error(got, wanted) <= WEIGHTS[text]


@pytest.mark.ecosystem("torchao")
@pytest.mark.parametrize("text", TRAINING)
def test_torchao_quantized_training(text: str) -> None:
    from torchao.float8 import convert_to_float8_training
    from torchao.quantization import quantize_

    def quantized(plain: nn.Module) -> None:
        if "Linear" in text:
            convert_to_float8_training(plain, config=meaning(text))
        else:
            quantize_(plain, meaning(text))

    dtype = torch.bfloat16 if "Linear" in text else torch.float32
    wanted = losses("cpu", dtype=dtype)
    here = losses("cpu", quantized, dtype=dtype)
    with natively():
        got = losses(DEVICE, quantized, dtype=dtype)
    assert error(got, wanted) <= TRAINING[text]
    # Stochastic rounding of weights differs between the devices.
    assert error(got, here) <= (1e-3 if "only_quantized" in text else 1e-4)


@pytest.mark.ecosystem("torchao")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_torchao_low_bit_optimizers(name: str) -> None:
    optimizer = getattr(importlib.import_module("torchao.optim"), name)
    # Compiling their step takes a minute and gives the same results.
    with torch.compiler.set_stance("force_eager"):
        here = losses("cpu", optimizer=optimizer)
        with natively():
            got = losses(DEVICE, optimizer=optimizer)
    assert error(got, here) <= 1e-4
    wanted = losses("cpu", optimizer=torch.optim.AdamW)
    assert error(got, wanted) <= OPTIMIZERS[name]


@pytest.mark.ecosystem("torchao")
@pytest.mark.parametrize("exported_on", ["cpu", DEVICE])
@torch.no_grad()
def test_torchao_pt2e_quantizes_an_exported_program(exported_on: str) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as rules

    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)).eval()
    inputs = torch.randn(2, 3, 8, 8)
    wanted = plain(inputs)
    with natively():
        example = (inputs.to(exported_on),)
        program = torch.export.export(plain.to(exported_on), example).module()
        quantizer = rules.X86InductorQuantizer()
        quantizer.set_global(rules.get_default_x86_inductor_quantization_config())
        prepared = prepare_pt2e(program, quantizer).to(DEVICE)
        prepared(inputs.to(DEVICE))
        got = convert_pt2e(prepared)(inputs.to(DEVICE))
    assert error(got, wanted) <= 0.02


@pytest.mark.ecosystem("torchao")
@torch.no_grad()
def test_torchao_4_bit_weights_can_be_saved_and_loaded(tmp_path: Path) -> None:
    from torchao.quantization import Int4PlainInt32Tensor, quantize_

    there = model(torch.bfloat16).to(DEVICE)
    quantize_(there, meaning("Int4WeightOnlyConfig(group_size=64)"))
    inputs = torch.randn(3, 256, dtype=torch.bfloat16, device=DEVICE)
    wanted = there(inputs)
    torch.save(there.state_dict(), tmp_path / "model.pt")
    again = model(torch.bfloat16).to(DEVICE)
    again.load_state_dict(torch.load(tmp_path / "model.pt"), assign=True)
    assert again(inputs).equal(wanted)
    # A safetensors file gives torchao's own class.
    layers: list[Any] = [again[0], again[2]]
    for layer in layers:
        parts, attributes = layer.weight.__tensor_flatten__()
        tensors = {name: getattr(layer.weight, name) for name in parts}
        weight = Int4PlainInt32Tensor(**tensors, **attributes)
        layer.weight = nn.Parameter(weight, requires_grad=False)
    with pytest.raises(NotImplementedError, match="does not support device"):
        again(inputs)
    assert meaning("adopt")(again)(inputs).equal(wanted)
    assert again(inputs[:0]).shape == (0, 256)


@pytest.mark.ecosystem("torchao")
def test_unsupported_quantization_is_refused() -> None:
    from torchao.quantization import quantize_

    with pytest.raises(ValueError, match=f"need a matrix on {DEVICE}"):
        quantize_(model(torch.bfloat16), meaning("Int4WeightOnlyConfig(group_size=32)"))
    blocks = "Float8DynamicActivationFloat8WeightConfig"
    granularity = "granularity=[PerBlock([1, 128]), PerBlock([128, 128])]"
    with pytest.raises(ValueError, match="scales of tensors or of rows"):
        quantize_(model(torch.bfloat16).to(DEVICE), meaning(f"{blocks}({granularity})"))


@pytest.mark.ecosystem
def test_the_page_lists_the_tested_configs() -> None:
    shown = re.findall(r"^\| `(.*)` \| ([\d.]+) \|$", PAGE.read_text("utf-8"), re.M)
    tested = WEIGHTS | TRAINING | {f"{name}()": bound for name, bound in OPTIMIZERS.items()}
    assert {text: float(bound) for text, bound in shown} == tested
