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
    compare_gradients,
    needs,
    sample,
    supported,
)

pytestmark = pytest.mark.usefixtures("everything_is_native")

Function = Callable[..., torch.Tensor]

UNARY: dict[str, Function] = {
    "angle": torch.angle,
    "digamma": lambda x: torch.digamma(x + 6),
    "erfinv": lambda x: torch.erfinv(x / 6),
    "isneginf": torch.isneginf,
    "isposinf": torch.isposinf,
    "lgamma": torch.lgamma,
    "logit": lambda x: torch.logit(x, 0.2),
    "nan_to_num": lambda x: torch.nan_to_num(x.float() / 0, 1.0, None, -3.0),
    "pow_2": lambda x: x**2,
    "pow_1": lambda x: x**1,
    "2_pow": lambda x: 2 ** x.float(),
    "square": torch.square,
}
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
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: torch.dtype) -> None:
    values = sample(6, 7, dtype=dtype)
    for layout in (lambda x: x, lambda x: x.T[1:, ::2], lambda x: x[:1].expand(3, -1)):
        compare(UNARY[name], layout(values), **close(dtype))


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


@needs(torch.float32)
@pytest.mark.parametrize("name", ["copysign_", "hypot_", "xlogy_", "fmod_", "nextafter_"])
def test_in_place(name: str) -> None:
    values, other = sample(5, 6, low=0.5), sample(5, 6, low=0.5, seed=1)
    base = values.to(DEVICE)
    result = getattr(base.T[1:], name)(other.to(DEVICE).T[1:])
    assert result.data_ptr() == base.T[1:].data_ptr()
    getattr(values.T[1:], name)(other.T[1:])
    assert_same(base, values)


@needs(torch.float32, torch.float64)
@pytest.mark.parametrize("name", ["copysign", "hypot", "logaddexp", "fmax", "xlogy", "nextafter"])
def test_out_is_resized_and_cast(name: str) -> None:
    function: Any = getattr(torch, name)
    one, other = sample(3, 4, low=0.5), sample(3, 4, low=0.5, seed=1)
    expected = function(one, other)
    out = torch.empty(0, device=DEVICE)
    assert function(one.to(DEVICE), other.to(DEVICE), out=out) is out
    assert_same(out, expected)
    wide = torch.empty(3, 4, dtype=torch.float64, device=DEVICE)
    function(one.to(DEVICE), other.to(DEVICE), out=wide)
    assert_same(wide, expected.double())


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
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.clamp(x, y, y + 1),
        lambda x, y: torch.clamp(x, min=y),
        lambda x, y: torch.clamp(x, max=y),
        lambda x, y: x.clone().clamp_(y, y + 1),
        lambda x, y: torch.clamp_min(x, y),
        lambda x, y: torch.clamp_max(x, y),
        lambda x, y: torch.lerp(x, y, 0.3),
        lambda x, y: torch.lerp(x, y, y.sigmoid()),
        lambda x, y: torch.addcmul(x, x, y, value=0.5),
        lambda x, y: torch.addcdiv(x, x, y.abs() + 1, value=2),
        lambda x, y: torch.where(x > y, x, y),
        lambda x, y: torch.where(x > y, x, 2.0),
        lambda x, y: torch.addr(x @ x.T, x[:, 0], y[:, 0], beta=0.5, alpha=2),
        lambda x, y: torch.outer(x[0], y[1]),
        lambda x, y: torch.rsub(x, y, alpha=2),
        lambda x, y: 3 % (x.abs() + 1),
        pytest.param(lambda x, y: torch.complex(x, y).real, marks=needs(torch.complex64)),
        pytest.param(lambda x, y: torch.polar(x.abs(), y).imag, marks=needs(torch.complex64)),
        lambda x, y: (x @ x.T).trace(),
        lambda x, y: torch.nan_to_num(x / 0, nan=1, posinf=2, neginf=3),
    ],
)
def test_of_several(function: Function) -> None:
    one, other = sample(6, 7), sample(6, 7, seed=1)
    compare(function, one, other, rtol=1e-5, atol=1e-5)
    compare(function, one.T, other.T, rtol=1e-5, atol=1e-5)


@needs(torch.float32)
@pytest.mark.parametrize(
    "function",
    [
        # Not digamma's, which is polygamma: no family has it.
        lambda x: torch.erfinv(x / 6),
        lambda x: torch.hypot(x, 2 * x),
        lambda x: torch.logaddexp(x, 2 * x),
        lambda x: torch.xlogy(x.abs(), x.abs() + 1),
        lambda x: torch.fmax(x, x.neg()),
        lambda x: torch.copysign(x, x.neg()),
        lambda x: torch.clamp(x, x.detach() - 1, x.detach() + 1),
        lambda x: torch.lerp(x, 2 * x, x.sigmoid()),
        lambda x: x**2 + x**1,
        lambda x: torch.nan_to_num(x),
    ],
)
def test_gradients(function: Function) -> None:
    compare_gradients(function, sample(4, 5, low=0.5))


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
