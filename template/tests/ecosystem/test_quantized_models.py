"""bitsandbytes, and checkpoints of quantized models, on the device, without fallbacks, against
float32 on the CPU. The tests write tiny checkpoints: nothing is downloaded.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE
from ecosystem.tiny import llama
from support import natively, needs

pytestmark = needs(torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.uint8)


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the largest difference over the largest wanted number."""
    got, wanted = got.detach().cpu().double(), wanted.detach().double()
    return float((got - wanted).abs().max() / wanted.abs().max())


LAYERS = {
    "Linear4bit(256, 128, quant_type='nf4')": 0.1,
    "Linear4bit(256, 128, quant_type='fp4')": 0.12,
    "Linear8bitLt(256, 128, has_fp16_weights=False, threshold=6.0)": 0.01,
    "Linear8bitLt(256, 128, has_fp16_weights=False)": 0.01,
}


@pytest.mark.ecosystem("bitsandbytes")
@pytest.mark.parametrize("text", LAYERS)
def test_bitsandbytes_linear_layers(text: str) -> None:
    from bitsandbytes import nn

    torch.manual_seed(0)
    plain = torch.nn.Linear(256, 128)
    inputs = torch.randn(2, 4, 256).half().float().requires_grad_()
    wanted = plain(inputs)
    wanted.sum().backward()
    with natively():
        layer = eval(text, vars(nn).copy())
        layer.load_state_dict(plain.state_dict())
        here = inputs.detach().half().to(DEVICE).requires_grad_()
        got = layer.half().to(DEVICE)(here)
        got.float().sum().backward()
    assert layer.weight.dtype in (torch.uint8, torch.int8)
    assert error(got, wanted) <= LAYERS[text]
    assert here.grad is not None and inputs.grad is not None
    assert error(here.grad, inputs.grad) <= LAYERS[text]


@pytest.mark.ecosystem("bitsandbytes")
def test_bitsandbytes_embedding() -> None:
    from bitsandbytes import nn

    plain = torch.nn.Embedding(64, 128)
    with natively():
        layer = nn.Embedding4bit(64, 128, quant_type="nf4")
        layer.load_state_dict(plain.state_dict())
        got = layer.to(DEVICE)(torch.arange(9, device=DEVICE))
    assert error(got, plain(torch.arange(9))) <= 0.12


@pytest.mark.ecosystem("bitsandbytes")
@pytest.mark.parametrize("decay", [0, 0.1])
@pytest.mark.parametrize(
    ("name", "options", "plain"),
    [
        ("AdamW8bit", {"lr": 1e-2}, "AdamW32bit"),
        ("Adam8bit", {"lr": 1e-2}, "Adam32bit"),
        ("AdEMAMix8bit", {"lr": 1e-3}, None),  # its 32-bit variant fails on the CPU
        ("SGD8bit", {"lr": 0.1, "momentum": 0.9}, "SGD32bit"),
        ("Lion8bit", {"lr": 1e-3}, "Lion32bit"),
        ("RMSprop8bit", {"lr": 1e-3}, "RMSprop32bit"),
        ("Adagrad8bit", {"lr": 1e-3}, "Adagrad32bit"),
        ("LAMB8bit", {"lr": 1e-3}, None),  # their 32-bit variants scale a step by norms
        ("LARS8bit", {"lr": 1e-3, "momentum": 0.9}, None),
    ],
)
def test_bitsandbytes_8_bit_optimizers(
    name: str, options: dict[str, Any], plain: str | None, decay: float
) -> None:
    optimizers = importlib.import_module("bitsandbytes.optim")

    def losses(device: str, name: str) -> torch.Tensor:
        torch.manual_seed(0)
        layer = torch.nn.Linear(250, 130).to(device)  # not a whole number of blocks
        inputs = torch.randn(16, 250).to(device)
        make = getattr(optimizers, name)
        optimizer = make(layer.parameters(), weight_decay=decay, **options)
        out = []
        for _ in range(5):
            loss = layer(inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            out.append(loss.detach().cpu())
        assert optimizer.state[layer.weight]["state1"].dtype is (
            torch.uint8 if "8bit" in name else torch.float32
        )
        return torch.stack(out)

    with natively():
        got = losses(DEVICE, name)
    assert error(got, losses("cpu", name)) <= 2e-4
    if plain is not None:
        assert error(got, losses("cpu", plain)) <= 1e-3


IDS = torch.arange(1, 17)[None]


def bfloat16_llama() -> Any:
    large = llama(vocab_size=128, hidden_size=128, intermediate_size=256)
    return large.to(torch.bfloat16).eval()


def write_model(path: Path) -> torch.Tensor:
    """Write a model, and return its logits in float32."""
    plain = bfloat16_llama()
    plain.save_pretrained(path)
    with torch.no_grad():
        logits: torch.Tensor = plain.float()(IDS).logits
    return logits


def loaded(path: Path, **options: Any) -> Any:
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(
        path, device_map=DEVICE, dtype=torch.bfloat16, **options
    )


def made_by(library: str, text: str) -> Any:
    import transformers

    if library == "torchao":
        names = {
            **vars(importlib.import_module("torchao.quantization")),
            **vars(importlib.import_module(f"{PACKAGE}.integrations.torchao")),
        }
        return transformers.TorchAoConfig(eval(text, names))
    name, arguments = text.split("(", 1)
    return eval(f"make({arguments}", {"make": getattr(transformers, name)})


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        pytest.param(
            text, bound, marks=pytest.mark.ecosystem("transformers", "accelerate", library)
        )
        for library, text, bound in [
            ("bitsandbytes", "BitsAndBytesConfig(load_in_4bit=True)", 0.2),
            ("bitsandbytes", "BitsAndBytesConfig(load_in_8bit=True)", 0.02),
            ("optimum.quanto", "QuantoConfig(weights='int8')", 0.02),
            ("torchao", "Int8WeightOnlyConfig()", 0.02),
            ("torchao", "Int8DynamicActivationInt8WeightConfig()", 0.02),
            ("torchao", "Float8WeightOnlyConfig()", 0.1),
            ("torchao", "Float8DynamicActivationFloat8WeightConfig(granularity=PerRow())", 0.1),
            ("torchao", "Int4WeightOnlyConfig(group_size=32)", 0.2),
        ]
    ],
)
@torch.no_grad()
def test_transformers_quantizes_saves_and_loads_a_model(
    text: str, bound: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    library = request.node.get_closest_marker("ecosystem").args[-1]
    wanted = write_model(tmp_path / "plain")
    with natively():
        model = loaded(tmp_path / "plain", quantization_config=made_by(library, text))
        got = model(IDS.to(DEVICE)).logits
        if library != "optimum.quanto":  # transformers cannot write such a checkpoint
            model.save_pretrained(tmp_path / "quantized")
            again = loaded(tmp_path / "quantized")
            if library == "torchao":
                again = importlib.import_module(f"{PACKAGE}.integrations.torchao").adopt(again)
            assert again(IDS.to(DEVICE)).logits.equal(got)
    assert model.model.layers[0].mlp.up_proj.weight.device.type == DEVICE
    assert error(got, wanted) <= bound


def compressed(path: Path, scheme: str) -> torch.Tensor:
    """Write a checkpoint by compressed-tensors; return the model's logits in float32."""
    from compressed_tensors import compressors, quantization
    from compressed_tensors.quantization.utils import calculate_qparams

    wanted = write_model(path / "plain")
    model = bfloat16_llama()
    config = quantization.QuantizationConfig(
        config_groups={"group_0": quantization.preset_name_to_scheme(scheme, ["Linear"])},
        ignore=["lm_head"],
        quantization_status="initialized",
    )
    quantization.apply_quantization_config(model, config)
    for module in model.modules():
        if (chosen := getattr(module, "quantization_scheme", None)) is None:
            continue
        arguments, weight = chosen.weights, module.weight.data.float()
        size = {"group": arguments.group_size, "channel": weight.shape[1]}
        groups = weight.reshape(-1, size.get(arguments.strategy, weight.numel()))
        scale, _ = calculate_qparams(groups.amin(1), groups.amax(1), arguments)
        module.weight_scale.data.copy_(scale.view_as(module.weight_scale))
        if hasattr(module, "input_scale"):  # for inputs up to 4, in place of a calibration
            module.input_scale.data.fill_(4 / 448)
        module.quantization_status = quantization.QuantizationStatus.FROZEN
    compressor = compressors.ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(path / "compressed")
    compressor.update_config(path / "compressed")
    return wanted


@pytest.mark.ecosystem("transformers", "accelerate", "compressed_tensors")
@pytest.mark.parametrize(
    ("scheme", "bound"),
    [("W8A16", 0.02), ("W4A16", 0.2), ("W8A8", 0.02), ("FP8", 0.1), ("FP8_DYNAMIC", 0.1)],
)
@torch.no_grad()
def test_compressed_tensors_checkpoints(scheme: str, bound: float, tmp_path: Path) -> None:
    wanted = compressed(tmp_path, scheme)
    with natively():
        got = loaded(tmp_path / "compressed")(IDS.to(DEVICE)).logits
    assert got.device.type == DEVICE
    assert error(got, wanted) <= bound
