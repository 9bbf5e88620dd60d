"""Matrix products against the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
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

TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float32: 1e-4, torch.float64: 1e-9}


def compare(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> None:
    expected = function(*arguments)
    tolerance = TOLERANCE.get(expected.dtype, 1e-4)
    actual = function(*[argument.to(DEVICE) for argument in arguments])
    if expected.dtype.is_floating_point or expected.dtype.is_complex:
        assert_same(actual, expected, rtol=tolerance, atol=tolerance)
    else:
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", supported(FLOATING, COMPLEX, INTEGERS), ids=str)
@pytest.mark.parametrize("sizes", [(4, 5, 6), (1, 1, 1), (33, 17, 65), (3, 0, 2), (0, 3, 2)])
def test_mm(dtype: torch.dtype, sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    one = sample(rows, inner, dtype=dtype, low=-2, high=2)
    other = sample(inner, columns, dtype=dtype, low=-2, high=2, seed=1)
    compare(torch.mm, one, other)
    compare(lambda x, y: torch.mm(x.T.contiguous().T, y), one, other)
    compare(lambda x, y: torch.mm(x, y.T.contiguous().T), one, other)
    compare(lambda x, y: torch.mm(y.T, x.T), one, other)


@needs(torch.float32)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5,), (5,)),
        ((3, 5), (5,)),
        ((5,), (5, 4)),
        ((2, 3, 5), (5, 4)),
        ((2, 3, 5), (2, 5, 4)),
        ((1, 3, 5), (4, 5, 2)),
        ((2, 1, 3, 5), (3, 5, 4)),
        ((2, 3, 5), (5,)),
        ((2, 3, 0), (2, 0, 4)),
    ],
)
def test_matmul_of_every_rank(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    compare(torch.matmul, sample(*left), sample(*right, seed=1))


@needs(torch.float32)
def test_layouts_of_the_factors() -> None:
    one, other = sample(8, 9), sample(9, 10, seed=1)
    compare(lambda x, y: x[::2, 1:] @ y[1:, ::3], one, other)
    compare(lambda x, y: x[:1].expand(4, -1) @ y, one, other)
    compare(torch.bmm, sample(3, 4, 5).transpose(1, 2), sample(3, 6, 4, seed=1).transpose(1, 2))


@needs(torch.float32)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 2), (2, 0)])
def test_sums_with_products(alpha: float, beta: float) -> None:
    one, other = sample(4, 5), sample(5, 6, seed=1)
    for bias in (sample(4, 6, seed=2), sample(6, seed=2), sample(4, 1, seed=2)):
        compare(lambda b, x, y: torch.addmm(b, x, y, alpha=alpha, beta=beta), bias, one, other)
    compare(
        lambda b, x, y: torch.baddbmm(b, x, y, alpha=alpha, beta=beta),
        sample(2, 4, 6),
        sample(2, 4, 5),
        sample(2, 5, 6),
    )
    compare(lambda b, x, y: torch.addmv(b, x, y, alpha=alpha, beta=beta), sample(4), one, sample(5))


@needs(torch.float32)
def test_beta_of_zero_ignores_nan() -> None:
    bias = torch.full((2, 2), float("nan"), device=DEVICE)
    ones = torch.ones(2, 2, device=DEVICE)
    assert torch.addmm(bias, ones, ones, beta=0).eq(2).all().item()


@needs(torch.float32)
def test_out_is_resized_and_written_in_place() -> None:
    one, other = sample(3, 4), sample(4, 5, seed=1)
    out = torch.empty(0, device=DEVICE)
    assert torch.mm(one.to(DEVICE), other.to(DEVICE), out=out) is out
    assert_same(out, one @ other, rtol=1e-5, atol=1e-5)
    base = torch.zeros(5, 3, device=DEVICE)
    torch.mm(one.to(DEVICE), other.to(DEVICE), out=base.T)
    assert_same(base.T.contiguous(), one @ other, rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError):
        torch.mm(one.to(DEVICE), one.to(DEVICE))


@needs(torch.complex64)
def test_conjugate_factors() -> None:
    one, other = sample(4, 5, dtype=torch.complex64), sample(4, 6, dtype=torch.complex64, seed=1)
    compare(lambda x, y: x.mH @ y, one, other)
    compare(lambda x, y: x.conj().T.imag @ y.real, one, other)


@needs(torch.float32)
def test_other_products() -> None:
    compare(torch.dot, sample(7), sample(7, seed=1))
    compare(torch.outer, sample(3), sample(4, seed=1))
    compare(
        lambda x, y: torch.einsum("bij,bkj->bik", x, y), sample(2, 3, 4), sample(2, 5, 4, seed=1)
    )
    compare(torch.nn.functional.linear, sample(2, 3, 4), sample(5, 4, seed=1), sample(5, seed=2))


@needs(torch.float32)
def test_factors_on_different_devices_are_refused() -> None:
    for use, shape in ((torch.mm, (2, 2)), (torch.bmm, (1, 2, 2)), (torch.dot, (2,))):
        one, other = torch.ones(shape, device=DEVICE), torch.ones(shape)
        for factors in ((one, other), (other, one)):
            with pytest.raises(RuntimeError, match="same device"):
                use(*factors)


@needs_two_devices
@needs(torch.float32)
def test_factors_on_two_devices_are_refused() -> None:
    one, other = (torch.ones(1, 2, 2, device=f"{DEVICE}:{index}") for index in (0, 1))
    with pytest.raises(RuntimeError, match="device"):
        torch.bmm(one, other)


@needs_two_devices
@needs(torch.float32)
def test_product_on_a_device_that_is_not_current() -> None:
    one = sample(3, 3).to(f"{DEVICE}:1")
    result = one @ one
    assert result.device == one.device
    assert_same(result, sample(3, 3) @ sample(3, 3), rtol=1e-5, atol=1e-5)
