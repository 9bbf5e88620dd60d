"""How often elements and slices occur: histograms, counts, distinct slices, the most frequent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import FLOATING, INTEGERS, assert_same, compare, layouts, natively, sample, supported

RANGES = [{}, {"min": -2, "max": 3}, {"min": -2.5, "max": 2.5}, {"min": 100, "max": 101}]


def assert_refused_alike(function: Callable[..., Any], *tensors: torch.Tensor) -> None:
    """Check that the device refuses what the CPU refuses, in the same words."""
    with pytest.raises(Exception) as expected:
        function(*tensors)
    with pytest.raises(expected.type) as actual:
        function(*[tensor.to(DEVICE) for tensor in tensors])
    assert str(actual.value)[:40] == str(expected.value)[:40]


# --- histc ---


@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.parametrize("bins", [1, 4, 7])
@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
def test_histc(dtype: torch.dtype, bins: int, limits: dict[str, float]) -> None:
    for values in layouts(10, 20, dtype=dtype):
        compare(lambda x: torch.histc(x, bins, **limits), values)


@pytest.mark.parametrize("limits", [{}, {"min": 0, "max": 7}, {"min": 2, "max": 5}], ids=str)
@pytest.mark.parametrize("dtype", supported(INTEGERS), ids=str)
def test_histc_of_integers_counts_as_of_numbers(dtype: torch.dtype, limits: dict[str, int]) -> None:
    values = sample(200, dtype=dtype, low=0, high=7)
    with natively():
        actual = torch.histc(values.to(DEVICE), 4, **limits)
    assert_same(actual, torch.histc(values.double(), 4, **limits).to(dtype))


def test_histc_of_integers_too_large_for_floating_point() -> None:
    values = torch.tensor([2**54, 2**54 + 1, 2**54 + 2, 2**54 + 4]).to(DEVICE)
    assert torch.histc(values, 4).tolist() == [1, 1, 1, 1]
    assert torch.histc(values, 4, 2**54, 2**54 + 3).tolist() == [1, 1, 1, 0]


def test_histc_of_special_values() -> None:
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, 3.0, 1.0])
    compare(lambda x: torch.histc(x, 3, 0, 3), values)
    compare(lambda x: torch.histc(x, 4), torch.ones(3))
    compare(lambda x: torch.histc(x, 4), torch.ones(0))
    compare(lambda x: torch.histc(x, 4), torch.tensor(1.0))


def test_histc_refuses_what_the_cpu_refuses() -> None:
    values = sample(5)
    assert_refused_alike(lambda x: torch.histc(x, 0), values)
    assert_refused_alike(lambda x: torch.histc(x, 4, 3, 1), values)
    assert_refused_alike(lambda x: torch.histc(x, 4, 0, float("inf")), values)
    assert_refused_alike(lambda x: torch.histc(x, 4, out=x.long()), values)


def test_histc_writes_to_outputs() -> None:
    values = sample(30)
    for shape, step in ((0, 1), (4, 1), (8, 2)):
        out = torch.empty(shape, device=DEVICE)[::step]
        with natively():
            assert torch.histc(values.to(DEVICE), 4, out=out) is out
        assert_same(out, torch.histc(values, 4))


# --- bincount ---


@pytest.mark.parametrize("dtype", supported(INTEGERS), ids=str)
def test_bincount(dtype: torch.dtype) -> None:
    values = sample(30, dtype=dtype, low=0, high=7)
    for some in (values, values[::2], values[:0]):
        compare(torch.bincount, some)
        compare(lambda x: torch.bincount(x, minlength=20), some)
        for weight in supported(torch.float32, torch.float64, torch.int32):
            if torch.float64 in supported() or weight is torch.float32:
                compare(torch.bincount, some, sample(*some.shape, dtype=weight))


def test_bincount_refuses_what_the_cpu_refuses() -> None:
    values = torch.arange(5)
    assert_refused_alike(lambda x: torch.bincount(x - 1), values)
    assert_refused_alike(lambda x: torch.bincount(x[None]), values)
    assert_refused_alike(lambda x: torch.bincount(x, minlength=-1), values)
    assert_refused_alike(lambda x: torch.bincount(x, x[:3]), values)


# --- unique, unique_consecutive along a dimension ---


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("function", [torch.unique, torch.unique_consecutive])
@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool), ids=str)
def test_distinct_slices(dtype: torch.dtype, function: Callable[..., Any], dim: int | None) -> None:
    for values in layouts(6, 2, 4, dtype=torch.float32):
        few = (values > 2).to(dtype) if dim is None else (values > 4).to(dtype)
        compare(lambda x: function(x, return_inverse=True, return_counts=True, dim=dim), few)
        compare(lambda x: function(x, dim=dim), few)


@pytest.mark.parametrize("operator", ["unique_dim", "unique_dim_consecutive"])
def test_distinct_slices_of_nothing_and_of_what_is_none(operator: str) -> None:
    function = getattr(torch.ops.aten, operator)
    values = sample(4, 3)
    compare(lambda x: function(x, 0), values[:0])
    compare(lambda x: function(x, 0), torch.full((3, 2), float("nan")))
    assert_refused_alike(lambda x: function(x, 0), values[:, :0])
    assert_refused_alike(lambda x: function(x, 0), values[:0, :0])
    assert_refused_alike(lambda x: function(x, 0), values[0, 0])
    assert_refused_alike(lambda x: function(x, 2), values)


# --- mode ---


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool), ids=str)
def test_mode(dtype: torch.dtype, dim: int) -> None:
    for values in layouts(7, 9, dtype=torch.float32):
        few = (values / 3).round().abs().to(dtype)
        compare(lambda x: torch.mode(x, dim), few)
        compare(lambda x: torch.mode(x, dim, keepdim=True), few)


def test_mode_of_nothing_and_of_one() -> None:
    compare(torch.mode, torch.tensor(3.0))
    compare(lambda x: torch.mode(x, 0), torch.ones(4, 0))
    assert_refused_alike(lambda x: torch.mode(x, 0), torch.ones(0, 4))
    assert_refused_alike(lambda x: torch.mode(x, 5), torch.ones(2, 4))
