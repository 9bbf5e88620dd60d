"""Mathematical functions of one, two and three tensors against the CPU, without a run on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import (
    FLOATING,
    INTEGERS,
    assert_same,
    close,
    needs,
    sample,
    supported,
)

pytestmark = pytest.mark.usefixtures("everything_is_native")

Function = Callable[..., torch.Tensor]

FLOATING_BINARY = ["copysign", "hypot", "logaddexp", "logaddexp2", "xlogy"]
REAL_BINARY = ["fmax", "fmin", "heaviside", "rsub", "floor_divide", "clamp_min", "clamp_max"]
INTEGER_BINARY = ["gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"]
STRICT = ["heaviside"]
"""Those that take no two element types."""


def compare(function: Function, *arguments: Any, **tolerances: float) -> None:
    """Run on both devices."""
    expected = function(*arguments)
    moved = [x.to(DEVICE) if isinstance(x, torch.Tensor) else x for x in arguments]
    assert_same(function(*moved), expected, **tolerances)


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS), ids=str)
@pytest.mark.parametrize("name", [*REAL_BINARY, *FLOATING_BINARY, *INTEGER_BINARY])
def test_binary_with_promotion(name: str, dtype: torch.dtype) -> None:
    if name in INTEGER_BINARY and dtype not in INTEGERS:
        return
    if name in ("hypot", "logaddexp", "logaddexp2") and dtype in INTEGERS:
        return
    function = getattr(torch, name)
    one = sample(5, 6, dtype=dtype, low=0)
    for other in supported(INTEGERS if name in INTEGER_BINARY else (*FLOATING, *INTEGERS)):
        if name in STRICT and other is not dtype:
            continue
        narrow = torch.float16 in (dtype, other) or torch.bfloat16 in (dtype, other)
        second = sample(5, 6, low=1, seed=1).to(other)
        compare(function, one, second, **close(torch.float16 if narrow else dtype))
        compare(function, one.T, second[:, :1].expand(5, 5)[0], **close(torch.float16))


@pytest.mark.parametrize("dtype", supported(torch.float16, torch.bfloat16, torch.float32), ids=str)
def test_nextafter_takes_the_smallest_step_of_its_type(dtype: torch.dtype) -> None:
    one = torch.tensor([1.0, 0.0, -1.0, 1.0, 0.0], dtype=dtype)
    other = torch.tensor([2.0, 1.0, 0.0, 1.0, -1.0], dtype=dtype)
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    expected = [1 + info.eps, least, -1 + info.eps / 2, 1.0, -least]
    result = torch.nextafter(one.to(DEVICE), other.to(DEVICE))
    assert_same(result, torch.tensor(expected, dtype=dtype), rtol=0, atol=0)


@needs(torch.int64)
@pytest.mark.parametrize("exponent", [0.5, -0.5, -1, -1.0, 3, 2.5])
def test_powers_of_special_values(exponent: float) -> None:
    special = torch.tensor([float("-inf"), float("inf"), -0.0, 0.0, float("nan"), 4.0, -4.0])
    for dtype in supported(torch.float32, torch.float64):
        compare(lambda x: x**exponent, special.to(dtype))


def test_shifts_by_python_operators() -> None:
    values = torch.tensor([1, -5, 2**40, 7])
    for function in (
        lambda x: x << 3,
        lambda x: x >> 2,
        lambda x: x << x.abs().clamp(max=5),
        lambda x: x >> (x.abs() - 5),
        lambda x: x.clone().__ilshift__(2),
        lambda x: x.clone().__irshift__(x.clone()),
    ):
        compare(function, values)


@needs(torch.float32)
def test_equality_of_tensors() -> None:
    one = sample(4, 5).to(DEVICE)
    assert torch.equal(one, one.clone())
    assert not torch.equal(one, one.neg())
    assert not torch.equal(one, one[:2])
    assert torch.equal(one[:0], one[:0].clone())
    assert one.is_set_to(one)
    assert not one.is_set_to(one.clone())
    with pytest.raises(RuntimeError, match="different devices"):
        torch.equal(one, one.cpu())
