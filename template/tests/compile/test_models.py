"""Compiled models do what eager ones do, backward passes, dropout and running statistics included."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from compile.programs import MODELS, assert_same
from support import example, run_python
from torch import Tensor, nn


@pytest.mark.parametrize(
    "mode", ["reduce-overhead", pytest.param("default", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("make", MODELS)
def test_training(make: Callable[[], tuple[nn.Module, Tensor]], mode: str) -> None:
    assert_same({"mode": mode}, make)


@pytest.mark.full
@pytest.mark.parametrize(
    "how",
    [
        {"backend": "eager"},
        {"backend": "aot_eager"},
        {"mode": "max-autotune"},
        {"mode": "max-autotune-no-cudagraphs"},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", MODELS)
def test_other_ways(make: Callable[[], tuple[nn.Module, Tensor]], how: dict[str, Any]) -> None:
    assert_same(how, make)


# With sizes that change, attention is made of products and a softmax, which draw by themselves.
@pytest.mark.full
@pytest.mark.parametrize("make", MODELS[:3])
def test_sizes_that_change(make: Callable[[], tuple[nn.Module, Tensor]]) -> None:
    assert_same({"dynamic": True}, make)


@pytest.mark.full
@pytest.mark.parametrize("name", ["GPT", "resnet", "UNet"])
def test_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = example(name.lower())
    expected = module.train(DEVICE, STEPS)
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Dynamo looks it up.
    make = getattr(module, name)
    monkeypatch.setattr(module, name, lambda: torch.compile(make()))
    torch.testing.assert_close(module.train(DEVICE, STEPS), expected, rtol=1e-3, atol=1e-3)


STEPS = 6
PATHS = [str(Path(__file__).parents[1])]
"""Where other processes find what the tests share."""
HOST = {f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS": "1", "OMP_NUM_THREADS": "2"}
"""The environment in which the host may use the memory of simulated devices."""


def test_code_of_the_host() -> None:
    """Elementwise operators and a reduction become one kernel, which runs in stream order."""
    run_python(
        f"""
import torch
from torch._inductor.utils import run_and_get_code

def program(x):
    for _ in range(5):
        x = torch.sin(x) * 2 + 0.5
    return x.sum(1), x.to(torch.float32)[:, ::2]

x = torch.randn(33, 65)
stream = torch.Stream("{DEVICE}")
with stream:
    held = x.to("{DEVICE}", non_blocking=True)
    result, code = run_and_get_code(torch.compile(program), held)
    torch.testing.assert_close([each.cpu() for each in result], list(program(x)))
last = torch.compile(program)(x.to("{DEVICE}:{backend.device_count() - 1}"))
torch.testing.assert_close([each.cpu() for each in last], list(program(x)))
assert "launch_host_kernel" in code[0], code[0]
""",
        HOST,
    )


@pytest.mark.full
@pytest.mark.parametrize("make", MODELS)
def test_training_by_code_of_the_host(make: Callable[[], tuple[nn.Module, Tensor]]) -> None:
    code = f"from compile import programs; programs.assert_same({{}}, programs.{make.__name__})"
    run_python(f"import sys; sys.path[:0] = {PATHS!r}\n{code}", HOST)
