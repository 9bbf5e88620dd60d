"""Numbers as arguments: numbers that do not fit into a dtype raise if the CPU raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from core.comparisons import close
from support import RELEASE, assert_same, needs, supported
from torch.nn import functional

NUMBERS = (True, 0, 3, -1, -129, 300, 70000, 2**40, -(2**63), 1.5, -2.5, 1e6, 1e39, -1e300)
SPECIAL = (float("inf"), float("-inf"), float("nan"))
COMPLEX = (3 + 0j, 1 + 2j)
Operator = Callable[[torch.Tensor, Any], torch.Tensor]


def places(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([0, 2], device=x.device)


def mask(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([True, False, True, False, True, True], device=x.device)


def assigned(x: torch.Tensor, index: Any, number: Any) -> torch.Tensor:
    x[index] = number
    return x


MATRICES = {
    "addmm": lambda x: (x.view(2, 3)[:, :2], x.view(2, 3), x.view(3, 2)),
    "addmv": lambda x: (x[:2], x.view(2, 3), x[:3]),
    "addr": lambda x: (x.view(2, 3), x[:2], x[:3]),
    "baddbmm": lambda x: (x.view(1, 2, 3)[:, :, :2], x.view(1, 2, 3), x.view(1, 3, 2)),
}
FILLS: dict[str, Operator] = {
    "full": lambda x, n: torch.full((2,), n, dtype=x.dtype, device=x.device),
    "full of one": lambda x, n: torch.full((1,), n, dtype=x.dtype, device=x.device),
    "full_like": torch.full_like,
    "new_full": lambda x, n: x.new_full((2,), n),
    "fill_": lambda x, n: x.fill_(n),
    "fill_ of none": lambda x, n: x[:0].fill_(n),
    "fill_ of a stepped view": lambda x, n: x[::2].fill_(n),
    "fill_ by a tensor": lambda x, n: x.fill_(torch.tensor(n)),
    "fill_diagonal_": lambda x, n: x.view(2, 3).fill_diagonal_(n),
    "x[0] =": lambda x, n: assigned(x, 0, n),
    "x[1:3] =": lambda x, n: assigned(x, slice(1, 3), n),
    "x[mask] =": lambda x, n: assigned(x, mask(x), n),
    "x[index] =": lambda x, n: assigned(x, places(x), n),
    "masked_fill": lambda x, n: x.masked_fill(mask(x), n),
    "masked_fill by a tensor": lambda x, n: x.masked_fill(
        mask(x), torch.tensor(n, device=x.device)
    ),
    "index_fill": lambda x, n: x.index_fill(0, places(x), n),
    "scatter": lambda x, n: x.scatter(0, places(x), n),
    "scatter, add": lambda x, n: x.scatter_(0, places(x), n, reduce="add"),
    "where": lambda x, n: torch.where(mask(x), x, n),
    "pad": lambda x, n: functional.pad(x, (1, 1), value=n),
    "scalar_tensor": lambda x, n: torch.scalar_tensor(n, dtype=x.dtype, device=x.device),
}
ARITHMETIC: dict[str, Operator] = {
    "add, alpha": lambda x, n: torch.add(x, x, alpha=n),
    "index_add, alpha": lambda x, n: x.index_add(0, places(x), x[:2], alpha=n),
    "pow": lambda x, n: x**n,
    "pow_": lambda x, n: x.pow_(n),
    "lerp": lambda x, n: torch.lerp(x, x + x, n),
    "addcdiv": lambda x, n: torch.addcdiv(x, x, x + x, value=n),
    **{
        f"{name}, {factor}": lambda x, n, name=name, factor=factor: getattr(torch, name)(
            *MATRICES[name](x), **{factor: n}
        )
        for name in MATRICES
        for factor in ("alpha", "beta")
    },
    "floor_divide": lambda x, n: x // n,
    "div, trunc": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
}
BOUNDS: dict[str, Operator] = {
    "clamp": lambda x, n: x.clamp(n),
    "clamp, max": lambda x, n: x.clamp(max=n),
    "clamp, both": lambda x, n: x.clamp(1, n),
    "clamp_": lambda x, n: x.clamp_(n, 2),
    "clamp_min_": lambda x, n: x.clamp_min_(n),
    "hardtanh": lambda x, n: torch.ops.aten.hardtanh(x, -1, n),
    "threshold": lambda x, n: torch.threshold(x, n, 1),
    "threshold, value": lambda x, n: torch.threshold(x, 1, n),
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "softplus": functional.softplus,
    "hardshrink": functional.hardshrink,
    "logit": lambda x, n: torch.logit(x, n),
}
ALONE, ALONE_IS_MINDED = ("clamp", "clamp, max"), (2, 12)
"""Older releases do not propagate a NaN bound on the CPU if it is the only bound."""
# If the CPU has no kernel, the device may have one. The CPU's own errors for divisions by zero have
# other messages.
FREE = "not implemented for|ZeroDivisionError"


def outcome(operator: Operator, dtype: torch.dtype, device: str, number: Any) -> Any:
    x = torch.tensor([2, 1, 3, 0, 7, 5]).to(dtype).to(device)
    try:
        result = operator(x, number)
        result.cpu()  # waits for errors that the device finds
    except (RuntimeError, TypeError) as error:
        return error
    return result


def check(operator: Operator, dtype: torch.dtype, number: Any) -> None:
    expected = outcome(operator, dtype, "cpu", number)
    if isinstance(expected, Exception) and any(words in str(expected) for words in FREE.split("|")):
        return
    actual = outcome(operator, dtype, DEVICE, number)
    if isinstance(expected, Exception):
        assert type(actual) is type(expected), (number, actual, expected)
        words = "value cannot be converted"
        assert (words in str(actual)) == (words in str(expected)), (number, actual, expected)
    else:
        assert not isinstance(actual, Exception), (number, actual)
        assert_same(actual, expected, **close(expected.dtype))


@pytest.mark.parametrize("dtype", supported(), ids=str)
@pytest.mark.parametrize("name", [*FILLS, *ARITHMETIC, *BOUNDS])
def test_numbers_out_of_range_raise_as_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    operator = {**FILLS, **ARITHMETIC, **BOUNDS}[name]
    numbers: tuple[Any, ...] = NUMBERS
    if name in FILLS or name in BOUNDS:
        numbers += SPECIAL
    if name in FILLS:
        numbers += COMPLEX
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            if number != number and name in ALONE and RELEASE < ALONE_IS_MINDED:
                continue
            check(operator, dtype, number)


@pytest.mark.parametrize("first, second", [(torch.int32, torch.float32), (torch.bool, torch.int64)])
@needs(torch.int32)
def test_addr_promotes_its_vectors(first: torch.dtype, second: torch.dtype) -> None:
    matrix = torch.ones(2, 3, dtype=first)
    a, b = torch.tensor([1.5, -2.5]).to(second), torch.tensor([3, 0, 7]).to(first)
    moved = [x.to(DEVICE) for x in (matrix, a, b)]
    assert_same(torch.addr(*moved, beta=2), torch.addr(matrix, a, b, beta=2))
    for wrong in (matrix[:, :2], matrix.view(1, 2, 3)):
        with pytest.raises(
            RuntimeError, match=r"must match the|2D tensor|must be greater|number of"
        ):
            torch.addr(wrong.to(DEVICE), *moved[1:])
    with pytest.raises(RuntimeError, match="Expected 1-D argument vec1"):
        torch.addr(moved[0], moved[0], moved[2])


@needs(torch.complex64)
def test_complex_numbers_divided_by_infinity_are_zero() -> None:
    infinity = float("inf")
    z = torch.tensor([1 + 2j, -3j, 0j, 2.5 + 0j])
    for number in (infinity, -infinity):
        assert_same(z.to(DEVICE) / number, z / number)
    by = torch.tensor([complex(infinity, 0), complex(0, infinity), 1e30 + 1e30j, 1e-30 + 0j])
    assert torch.isfinite(torch.view_as_real(z.to(DEVICE) / by.to(DEVICE))).all()
