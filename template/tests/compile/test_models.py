"""Compiled models do what eager ones do, backward passes, dropout and running statistics included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
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
        {"dynamic": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", MODELS)
def test_other_ways(make: Callable[[], tuple[nn.Module, Tensor]], how: dict[str, Any]) -> None:
    assert_same(how, make)


@pytest.mark.full
@pytest.mark.parametrize("name", ["gpt", "resnet", "unet"])
def test_example(name: str) -> None:
    module = example(name)
    torch.testing.assert_close(
        compiled_losses(module, name), module.train(DEVICE), rtol=1e-3, atol=1e-3
    )


def compiled_losses(module: Any, name: str) -> list[float]:
    """Train the example with its model's forward pass compiled."""
    kind = next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__name__.lower() in (name, "network")
    )
    eager = kind.forward
    kind.forward = torch.compile(eager)
    try:
        losses: list[float] = module.train(DEVICE)
    finally:
        kind.forward = eager
    return losses


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
assert "launch_host_kernel" in code[0], code[0]
""",
        HOST,
    )


@pytest.mark.full
@pytest.mark.parametrize("make", MODELS)
def test_training_by_code_of_the_host(make: Callable[[], tuple[nn.Module, Tensor]]) -> None:
    code = f"from compile import programs; programs.assert_same({{}}, programs.{make.__name__})"
    run_python(f"import sys; sys.path[:0] = {PATHS!r}\n{code}", HOST)
