"""Operators and autograd functions in Python, on the device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from support import compare_gradients, needs, run_python, sample

pytestmark = needs(torch.float32)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        result: torch.Tensor = gradients[0] * 3 * x**2
        return result


def test_a_custom_autograd_function_has_its_gradient() -> None:
    compare_gradients(lambda x: Cube.apply(x), sample(3, 4))  # type: ignore[no-untyped-call]


DEFINITIONS = f"""
import torch

backend = torch.{DEVICE}
backend.set_fallback_policy("silent")

@torch.library.custom_op("mine::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

@scaled.register_fake
def _(x, by):
    return torch.empty_like(x)

def save(ctx, inputs, output):
    ctx.by = inputs[1]

scaled.register_autograd(lambda ctx, gradient: (gradient * ctx.by, None), setup_context=save)
"""


def run(code: str) -> None:
    run_python(DEFINITIONS + code)


def test_a_custom_operator_runs_and_has_gradients_on_the_device() -> None:
    run(
        f"""
x = torch.arange(4.0, device="{DEVICE}", requires_grad=True)
y = scaled(x, 3.0)
assert y.device == x.device and y.tolist() == [0.0, 3.0, 6.0, 9.0]
y.sum().backward()
assert x.grad.tolist() == [3.0] * 4

@scaled.register_kernel("{DEVICE}")
def _(x, by):
    return x * by + 100

assert scaled(x, 3.0).tolist() == [100.0, 103.0, 106.0, 109.0]
assert scaled(x.cpu(), 3.0).tolist() == [0.0, 3.0, 6.0, 9.0]

# The fallback runs an operator that has a CPU kernel only.
library = torch.library.Library("theirs", "DEF")
library.define("negated(Tensor x) -> Tensor")
library.impl("negated", lambda x: torch.from_numpy(-x.numpy()), "CPU")
result = torch.ops.theirs.negated(x.detach())
assert result.device == x.device and result.tolist() == [-0.0, -1.0, -2.0, -3.0]
assert backend.fallback_stats()["theirs::negated"].calls == 1
"""
    )


@pytest.mark.full
def test_a_custom_operator_can_be_compiled_and_passes_opcheck() -> None:
    run(
        f"""
x = torch.arange(4.0, device="{DEVICE}", requires_grad=True)
compiled = torch.compile(lambda x: scaled(x + 1, 2.0), backend="aot_eager", fullgraph=True)
y = compiled(x)
y.sum().backward()
assert y.tolist() == [2.0, 4.0, 6.0, 8.0] and x.grad.tolist() == [2.0] * 4
tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
torch.library.opcheck(scaled, (x, 3.0), test_utils=tests)
"""
    )
