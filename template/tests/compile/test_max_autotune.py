"""``mode="max-autotune"``: the kernels that it chooses give the results of eager operators."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE
from support import has_function, run_python
from torch import Tensor, nn
from torch._inductor import config
from torch._inductor.utils import run_and_get_code
from torch.nn import functional

pytestmark = pytest.mark.skipif(
    not has_function("modules", "load_module") or torch.__version__ < "2.13",
    reason="the device library takes no kernels, or Inductor is too old to write them",
)
MODE = "max-autotune-no-cudagraphs"
_TUNE = f"""
import importlib, torch, {PACKAGE}
tuning = importlib.import_module("{PACKAGE}.compiler.kernels._tuning")
measured = []
original = tuning._Tuned._measured
tuning._Tuned._measured = lambda *given: measured.append(1) or original(*given)
def function(x, y):
    x.add_(1)
    return x.softmax(-1), (x * y).sum(0), x.sin() + y
x, y = torch.randn(40, 300), torch.randn(300)
held = [each.to("{DEVICE}") for each in (x, y)]
results = torch.compile(function, mode="{MODE}")(*held)
for one, other in zip([*results, held[0]], [*function(x, y), x]):
    torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4)
print(len(measured))
"""


def measured_by(environment: dict[str, str]) -> int:
    """Return how many kernels a process has measured."""
    return int(run_python(_TUNE, environment).stdout.split()[-1])


@pytest.mark.full
def test_launch_shapes_are_measured_once(tmp_path: Path) -> None:
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    first = measured_by(environment)
    choices = list(tmp_path.rglob("*.shape.json"))
    assert first >= 2
    assert len(choices) == first
    assert measured_by(environment) == 0
    # A file that another process wrote in part, or for another list of shapes.
    choices[0].write_text("[")
    choices[1].write_text("99")
    assert measured_by(environment) == 2


@pytest.mark.full
def test_every_launch_shape_gives_the_same_results(tmp_path: Path) -> None:
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    measured_by(environment)
    for place in range(1, 3):
        for choice in tmp_path.rglob("*.shape.json"):
            choice.write_text(json.dumps(place))
        assert measured_by(environment) == 0


class Block(nn.Module):
    """Products, each followed by another kind of epilogue."""

    def __init__(self, activation: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
        super().__init__()
        self.up = nn.Linear(24, 40, dtype=dtype)
        self.down = nn.Linear(40, 24, bias=False, dtype=dtype)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.activation(self.up(x)))


@pytest.mark.parametrize("size", [(10, 24), (2, 5, 24)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "activation",
    [
        torch.relu,
        functional.gelu,
        lambda x: functional.gelu(x, approximate="tanh"),
        functional.silu,
    ],
    ids=["relu", "gelu", "gelu_tanh", "silu"],
)
def test_epilogues_are_fused_only_if_they_are_faster(
    activation: Callable[[Tensor], Tensor],
    dtype: torch.dtype,
    size: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    epilogues: Any = pytest.importorskip(f"{PACKAGE}.compiler.kernels._epilogues")
    torch._dynamo.reset()
    block, x = Block(activation, dtype), torch.randn(size, dtype=dtype)
    with torch.no_grad():
        expected = block(x)
        block.to(DEVICE)
        # Without a view in between, Inductor itself makes the second product a bias.
        for is_faster, count in ((True, len(size) - 1), (False, 0)):
            monkeypatch.setattr(epilogues, "is_faster", lambda _, answer=is_faster: answer)
            torch._dynamo.reset()
            compiled = torch.compile(block, mode=MODE)
            with config.patch(force_disable_caches=True):  # their keys lack the choice
                result, codes = run_and_get_code(compiled, x.to(DEVICE))
            assert sum(code.count("matmul_epilogue.default(") for code in codes) == count
            tolerance = 1e-5 if dtype is torch.float32 else 3e-2
            torch.testing.assert_close(result.cpu(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.full
def test_epilogues_are_fused_with_cpp_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    epilogues: Any = pytest.importorskip(f"{PACKAGE}.compiler.kernels._epilogues")
    monkeypatch.setattr(epilogues, "is_faster", lambda _: True)
    torch._dynamo.reset()
    block, x = Block(functional.gelu, torch.float32), torch.randn(2, 5, 24)
    with torch.no_grad(), config.patch(force_disable_caches=True):
        expected = block(x)
        options = {"max_autotune": True, "cpp_wrapper": True}
        result, codes = run_and_get_code(
            torch.compile(block.to(DEVICE), options=options), x.to(DEVICE)
        )
    assert any("matmul_epilogue" in code for code in codes)
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_a_product_that_is_also_returned_is_kept() -> None:
    torch._dynamo.reset()
    layer = nn.Linear(8, 8, device=DEVICE)

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        product = layer(x)
        return product, torch.relu(product)

    x = torch.randn(4, 8, device=DEVICE)
    with torch.no_grad():
        product, positive = torch.compile(function, mode=MODE)(x)
        torch.testing.assert_close(product, layer(x))
        torch.testing.assert_close(positive, layer(x).relu())


def test_gradients_equal_eager() -> None:
    torch._dynamo.reset()
    layer = nn.Linear(8, 8, device=DEVICE)
    x = torch.randn(4, 8, device=DEVICE)
    gradients = []
    for model in (layer, torch.compile(layer, mode=MODE)):
        functional.gelu(model(x)).sum().backward()
        assert layer.weight.grad is not None
        gradients.append(layer.weight.grad.clone())
        layer.zero_grad()
    torch.testing.assert_close(*gradients)
