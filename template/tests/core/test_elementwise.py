"""Elementwise operators: every dtype, promotion, numbers, special values, devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import (
    COMPLEX,
    FLOATING,
    INTEGERS,
    assert_same,
    names,
    needs,
    needs_two_devices,
    sample,
    supported,
)

REFUSED = (RuntimeError, NotImplementedError, TypeError)
COMMON = (*FLOATING, *INTEGERS, *COMPLEX, torch.bool)

UNARY = names(
    """
    abs neg sign sgn reciprocal sqrt rsqrt exp expm1 exp2 log log2 log10 log1p sin cos tan asin acos
    atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid floor ceil trunc round frac relu square
    logical_not bitwise_not isnan isinf isfinite isneginf signbit
    """
)
BINARY = names(
    """
    add sub mul div floor_divide remainder fmod pow atan2 maximum minimum fmax fmin hypot copysign
    logaddexp logaddexp2 xlogy heaviside rsub clamp_min clamp_max gcd lcm bitwise_left_shift
    bitwise_right_shift eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
    """
)
LAYOUTS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[1:, ::2],
    lambda x: x[:1].expand(6, -1),
    lambda x: x[2],
    lambda x: x[3, 4],
    lambda x: x[:0],
]


def compare(
    function: Callable[..., torch.Tensor], *arguments: torch.Tensor, **keywords: Any
) -> None:
    """Run on both; what the CPU refuses the device must refuse, unless nothing is computed.

    But the CPU has hardly any operator for the dtypes that came late, and a device may have more.
    """
    on_device = [argument.to(DEVICE) for argument in arguments]
    try:
        expected = function(*arguments, **keywords)
    except REFUSED:
        if not all(argument.numel() for argument in arguments):
            return
        if any(argument.dtype not in COMMON for argument in arguments):
            compare_widened(function, on_device, **keywords)
            return
        with pytest.raises(REFUSED):
            function(*on_device, **keywords)
        return
    assert_same(function(*on_device, **keywords), expected)


def compare_widened(
    function: Callable[..., torch.Tensor], arguments: list[torch.Tensor], **keywords: Any
) -> None:
    """Compare what the device does, if it does, with what the CPU does in wider dtypes."""
    try:
        actual = function(*arguments, **keywords)
    except REFUSED:
        return
    widened = [
        argument.cpu().to(torch.float32 if argument.is_floating_point() else torch.int64)
        if argument.dtype not in COMMON
        else argument.cpu()
        for argument in arguments
    ]
    assert_same(actual, function(*widened, **keywords).to(actual.dtype))


@pytest.mark.parametrize("dtype", supported(), ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: torch.dtype) -> None:
    function = getattr(torch, name)
    values = sample(6, 7, dtype=dtype)
    if name == "abs" and dtype is torch.bool:
        # CUDA gives truth values as they are, and so do we; the CPU has no kernel for them.
        assert_same(torch.abs(values.to(DEVICE)), values)
        return
    compare(function, values)
    if dtype.is_floating_point:
        special = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan")]
        compare(function, torch.tensor(special, dtype=dtype))


@pytest.mark.parametrize("dtype", supported(), ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_with_promotion(name: str, dtype: torch.dtype) -> None:
    function = getattr(torch, name)
    one = sample(4, 5, dtype=dtype, low=1)
    for other in supported():
        divisor = torch.ones(4, 5) if other is torch.bool else sample(4, 5, low=1, seed=1)
        compare(function, one, divisor.to(other))


@needs(torch.float32)
def test_two_tensors_that_lie_differently() -> None:
    one, other = sample(6, 7, low=0.5), sample(6, 7, low=0.5, seed=1)
    for left in LAYOUTS:
        for right in LAYOUTS:
            compare(torch.sub, left(one), right(other))


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
def test_large_integers_stay_exact() -> None:
    for dtype in supported(torch.int64):
        values = torch.tensor([2**62, -(2**62), 2**53 + 1], dtype=dtype)
        compare(lambda x: x + 1, values)
        compare(lambda x: x // 3, values)
        compare(lambda x: x == 2**53 + 1, values)
        compare(lambda x: x.clamp(max=2**53), values)


@needs(torch.float32, torch.int64)
def test_in_place_result_that_cannot_be_held_is_refused() -> None:
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64, device=DEVICE).add_(1.5)


@needs(torch.float32)
def test_out_on_another_device_is_refused() -> None:
    one = torch.ones(2, device=DEVICE)
    with pytest.raises(RuntimeError):
        torch.add(one, one, out=torch.empty(2))


@needs(torch.float32)
def test_output_may_be_an_input() -> None:
    value = sample(4, 4)
    on_device = value.to(DEVICE)
    torch.mul(on_device, on_device, out=on_device)
    assert_same(on_device, value * value)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(on_device[1:], 1, out=on_device[:-1])


@needs(torch.float32)
def test_zero_dimensional_cpu_tensors_act_as_scalars() -> None:
    scalar = torch.tensor(2.5)
    values = sample(4)
    on_device = values.to(DEVICE)
    for function in (
        lambda x: x + scalar,
        lambda x: scalar - x,
        lambda x: x * scalar,
        lambda x: torch.maximum(x, scalar),
        lambda x: scalar // x,
        lambda x: torch.atan2(scalar, x),
    ):
        assert_same(function(on_device), function(values))
    on_device *= scalar
    assert_same(on_device, values * scalar)


@needs(torch.float64, torch.float32)
def test_zero_dimensional_cpu_tensor_does_not_promote() -> None:
    result = torch.ones(2, device=DEVICE) + torch.tensor(1.0, dtype=torch.float64)
    assert result.dtype is torch.float32


@needs(torch.float32)
def test_cpu_tensor_with_dimensions_is_refused() -> None:
    on_device, on_cpu = torch.ones(2, device=DEVICE), torch.ones(2)
    uses: list[Callable[[], object]] = [
        lambda: on_device + on_cpu,
        lambda: on_cpu * on_device,
        lambda: on_device.add_(on_cpu),
        lambda: torch.maximum(on_device, on_cpu),
        lambda: torch.where(on_device > 0, on_device, on_cpu),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="same device"):
            use()


@needs_two_devices
@needs(torch.float32)
def test_tensors_of_two_devices_are_refused() -> None:
    one, other = torch.ones(2, device=f"{DEVICE}:0"), torch.ones(2, device=f"{DEVICE}:1")
    for use in (torch.add, torch.mul, torch.eq, torch.maximum):
        with pytest.raises(RuntimeError, match=f"{DEVICE}:1"):
            use(one, other)


@needs_two_devices
@needs(torch.float32)
def test_result_is_on_the_device_of_the_inputs_not_the_current_one() -> None:
    value = torch.ones(2, device=f"{DEVICE}:1")
    for result in (value + 1, value * value, value.sum(), value.relu(), torch.zeros_like(value)):
        assert result.device == value.device


@needs(torch.float32)
def test_more_dimensions_than_a_kernel_takes() -> None:
    values = sample(*([1, 2] * 9))
    compare(lambda x: x.transpose(1, 17) + x, values)
    compare(torch.exp, values.transpose(3, 15))


@needs(torch.float32)
def test_large_tensors() -> None:
    compare(lambda x, y: x * y + x, sample(1025, 1031), sample(1025, 1031, seed=1))


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
def test_any_byte_but_0_is_true(name: str) -> None:
    """A view of bytes as bool may have others than 0 and 1."""
    bytes_ = torch.tensor([0, 2, 137, 1], dtype=torch.uint8)
    expected = BOOLEAN[name](bytes_.bool())
    actual = BOOLEAN[name](bytes_.to(DEVICE).view(torch.bool))
    assert_same(actual, expected)


@needs(torch.float16, torch.int64)
def test_ldexp_where_the_power_alone_is_out_of_range() -> None:
    numbers = torch.tensor([-2.0, 2.0**-10], dtype=torch.float16)
    exponents = torch.tensor([-25, 20])
    expected = torch.ldexp(numbers, exponents)
    assert_same(torch.ldexp(numbers.to(DEVICE), exponents.to(DEVICE)), expected)
    assert_same(numbers.to(DEVICE).ldexp_(exponents.to(DEVICE)), expected)
