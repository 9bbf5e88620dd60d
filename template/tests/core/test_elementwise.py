"""Elementwise operators: promotion, numbers, exact integers, special values, devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, computed_by_the_cpu
from support import (
    COMPLEX,
    FLOATING,
    INTEGERS,
    assert_same,
    needs,
    needs_two_devices,
    sample,
    supported,
)

REFUSED = (RuntimeError, NotImplementedError, TypeError)


def compare(
    function: Callable[..., torch.Tensor], *arguments: torch.Tensor, **keywords: Any
) -> None:
    """Compare both devices. The device must refuse what the CPU refuses."""
    on_device = [argument.to(DEVICE) for argument in arguments]
    try:
        expected = function(*arguments, **keywords)
    except REFUSED:
        with pytest.raises(REFUSED):
            function(*on_device, **keywords)
        return
    assert_same(function(*on_device, **keywords), expected)


@pytest.mark.parametrize("dtype", list(filter(computed_by_the_cpu, supported())), ids=str)
@pytest.mark.parametrize("name", ["add", "div", "maximum", "pow", "lt", "logical_and"])
def test_two_dtypes_promote_as_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    one = sample(4, 5, dtype=dtype, low=1)
    for other in supported(FLOATING, INTEGERS, COMPLEX, torch.bool):
        compare(getattr(torch, name), one, sample(4, 5, low=1, seed=1).to(other))


@needs(torch.bool)
def test_abs_of_bool_is_the_identity() -> None:
    """As on CUDA; the CPU has no kernel for it."""
    values = torch.tensor([True, False])
    assert_same(torch.abs(values.to(DEVICE)), values)


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS), ids=str)
def test_python_scalars_promote_as_on_the_cpu(dtype: torch.dtype) -> None:
    values = sample(5, dtype=dtype, low=1)
    for scalar in (2, 2.5, True, 0, 2**40, -3, 1.5 + 2j):
        for function in (
            lambda x, s=scalar: x + s,
            lambda x, s=scalar: s - x,
            lambda x, s=scalar: x * s,
            lambda x, s=scalar: s / x,
            lambda x, s=scalar: torch.eq(x, s),
        ):
            compare(function, values)


@needs(torch.float32)
def test_output_may_be_an_input() -> None:
    value = sample(4, 4)
    on_device = value.to(DEVICE)
    torch.mul(on_device, on_device, out=on_device)
    assert_same(on_device, value * value)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(on_device[1:], 1, out=on_device[:-1])


@needs(torch.float64, torch.float32)
def test_zero_dimensional_cpu_tensor_does_not_promote() -> None:
    result = torch.ones(2, device=DEVICE) + torch.tensor(1.0, dtype=torch.float64)
    assert result.dtype is torch.float32


@needs_two_devices
@needs(torch.float32)
def test_result_is_on_the_device_of_the_inputs_not_the_current_one() -> None:
    for function in (
        lambda x: x + 1,
        torch.sum,
        torch.relu,
        torch.special.bessel_j0,
        torch.zeros_like,
        lambda x: x[torch.tensor([0], device=x.device)],
        lambda x: x[0, 0] @ x[0, 0],
        lambda x: torch.nn.functional.conv2d(x, x),
        lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x),
    ):
        value = sample(1, 1, 3, 3)
        result = function(value.to(f"{DEVICE}:1"))
        assert result.get_device() == 1
        assert_same(result, function(value), rtol=1e-5, atol=1e-5)


@needs(torch.float32)
def test_more_dimensions_than_a_kernel_supports() -> None:
    values = sample(*([1, 2] * 9))
    compare(lambda x: x.transpose(1, 17) + x, values)
    compare(torch.exp, values.transpose(3, 15))


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


BOOLEAN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "eq": lambda b: b == torch.tensor([False, True, True, True], device=b.device),
    "and": lambda b: b & b.flip(0),
    "not": lambda b: ~b,
    "all": lambda b: b[1:].all(),
    "any": lambda b: b.any(),
    "sum": lambda b: b.sum(),
    "sort": lambda b: b.sort(stable=True)[0],
    "argsort": lambda b: b.argsort(stable=True),
    "where": lambda b: torch.where(b, 1, 2),
    "cummax": lambda b: b.cummax(0)[0],
    "cummax's places": lambda b: b.cummax(0)[1],
    "unique": lambda b: b.unique(),
    "nonzero": lambda b: b.nonzero(),
    "masked_fill": lambda b: torch.zeros(4, device=b.device).masked_fill(b, 2.0),
    "mask": lambda b: torch.arange(4, device=b.device)[b],
    "float": lambda b: b.to(torch.float32),
}


@needs(torch.float32, torch.uint8, torch.int64, torch.bool)
@pytest.mark.parametrize("name", BOOLEAN)
def test_every_nonzero_byte_is_true(name: str) -> None:
    """A view of bytes as bool can have other bytes than 0 and 1."""
    bytes_ = torch.tensor([0, 2, 137, 1], dtype=torch.uint8)
    expected = BOOLEAN[name](bytes_.bool())
    actual = BOOLEAN[name](bytes_.to(DEVICE).view(torch.bool))
    assert_same(actual, expected)


@needs(torch.float16, torch.int64)
def test_ldexp_with_a_power_out_of_range() -> None:
    numbers = torch.tensor([-2.0, 2.0**-10], dtype=torch.float16)
    exponents = torch.tensor([-25, 20])
    expected = torch.ldexp(numbers, exponents)
    assert_same(torch.ldexp(numbers.to(DEVICE), exponents.to(DEVICE)), expected)
    assert_same(numbers.to(DEVICE).ldexp_(exponents.to(DEVICE)), expected)


@needs(torch.float32)
def test_large_integers_stay_exact() -> None:
    for dtype in supported(torch.int64):
        values = torch.tensor([2**62, -(2**62), 2**53 + 1], dtype=dtype)
        compare(lambda x: x + 1, values)
        compare(lambda x: x // 3, values)
        compare(lambda x: x == 2**53 + 1, values)
        compare(lambda x: x.clamp(max=2**53), values)


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
