"""Searches in sorted sequences, and isin."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.comparisons import compare, layouts
from support import FLOATING, INTEGERS, sample, supported

NUMBERS = supported(FLOATING, INTEGERS)
COMPLEX = supported(torch.complex64)


@pytest.mark.parametrize("number", [2, 2.5, -100, 100])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers_are_promoted_as_with_tensors(dtype: torch.dtype, number: float) -> None:
    if number < 0 and not dtype.is_signed:
        pytest.skip("the CPU wraps it around")
    sequence = sample(20, dtype=dtype).sort().values
    compare(lambda s: torch.searchsorted(s, number), sequence)
    compare(lambda s: torch.bucketize(number, s, right=True), sequence)


def test_special_values() -> None:
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0, 0.0])
    for right in (False, True):
        compare(lambda s, v, r=right: torch.bucketize(v, s, right=r), torch.arange(5.0), values)
    compare(torch.searchsorted, torch.arange(5), torch.tensor([1.5, 2]))
    compare(torch.bucketize, torch.tensor(3.0), torch.arange(5.0))


def test_searches_refuse_what_the_cpu_refuses() -> None:
    line = torch.arange(5.0)
    for change in (
        lambda s: torch.searchsorted(s, s, side="middle"),
        lambda s: torch.searchsorted(s, s, side="left", right=True),
        lambda s: torch.searchsorted(s[0], s),
        lambda s: torch.searchsorted(s[None], s),
        lambda s: torch.bucketize(s, s[None]),
        lambda s: torch.searchsorted(s, s, sorter=s),
        lambda s: torch.searchsorted(s, s, sorter=s.long() + 1),
        lambda s: torch.searchsorted(s, s, out=s.int()),
        lambda s: torch.searchsorted(s > 0, s > 0),
    ):
        with pytest.raises((RuntimeError, NotImplementedError)) as expected:
            change(line)
        with pytest.raises(expected.type) as actual:
            change(line.to(DEVICE))
        assert str(actual.value)[:40] == str(expected.value)[:40]


# --- isin ---


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 30])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_isin(dtype: torch.dtype, count: int, invert: bool) -> None:
    tests = sample(count, dtype=dtype, seed=1)
    for elements in (
        *layouts(3, 5, dtype=dtype),
        sample(1, dtype=dtype)[0],
        sample(0, dtype=dtype),
    ):
        if count > 0:
            tests[0] = elements.flatten()[0] if elements.numel() else 0
        compare(lambda e, t: torch.isin(e, t, invert=invert), elements, tests)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_isin_of_numbers(dtype: torch.dtype) -> None:
    values = sample(3, 5, dtype=dtype)
    for number in (2, 2.5):
        compare(lambda x, n=number: torch.isin(x, n), values)
        compare(lambda x, n=number: torch.isin(n, x, invert=True), values)
    compare(torch.isin, values, values[0, 0])


def test_isin_of_many_elements() -> None:
    compare(torch.isin, torch.arange(3000) * 7 % 1000, torch.arange(0, 3000, 2))
    elements, tests = sample(3000), sample(3000, seed=1)
    tests[:100], elements[::7], tests[::5] = elements[:100], float("nan"), float("nan")
    compare(torch.isin, elements, tests)


def test_isin_promotes() -> None:
    for elements, tests in (
        (torch.arange(5), torch.arange(5.0)),
        (torch.arange(5, dtype=torch.int32), torch.tensor([2**40 + 1, 3])),
        (torch.arange(5, dtype=torch.int32), torch.tensor([2**40 + 1])),
        (torch.tensor([float("nan"), 1]), torch.tensor([float("nan"), 1])),
    ):
        compare(torch.isin, elements, tests)


def test_isin_refuses_what_the_cpu_refuses() -> None:
    for wrong in (torch.ones(2, dtype=torch.bool), *[torch.ones(2, dtype=d) for d in COMPLEX]):
        with pytest.raises(RuntimeError, match="Unsupported input type encountered for isin"):
            torch.isin(wrong.to(DEVICE), wrong.to(DEVICE))
    with pytest.raises(RuntimeError, match="same device"):
        torch.isin(torch.arange(3, device=DEVICE), torch.arange(3))
