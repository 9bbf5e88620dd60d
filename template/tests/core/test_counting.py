"""Operators that count elements and slices: integers, special values, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from core.comparisons import compare
from support import INTEGERS, assert_same, natively, sample, supported


def assert_refused_alike(function: Callable[..., Any], *tensors: torch.Tensor) -> None:
    """Check that the device raises the CPU's exception, with the same message."""
    with pytest.raises(Exception) as expected:
        function(*tensors)
    with pytest.raises(expected.type) as actual:
        function(*[tensor.to(DEVICE) for tensor in tensors])
    assert str(actual.value)[:40] == str(expected.value)[:40]


# --- histc ---


@pytest.mark.parametrize("limits", [{}, {"min": 0, "max": 7}, {"min": 2, "max": 5}], ids=str)
@pytest.mark.parametrize("dtype", supported(INTEGERS), ids=str)
def test_histc_of_integers_equals_floats(dtype: torch.dtype, limits: dict[str, int]) -> None:
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
    compare(lambda x: torch.histc(x, 4), torch.tensor([-2e38, 2e38]))
    compare(lambda x: torch.histc(x, 4, min=-3e38, max=3e38), torch.ones(3))


# --- bincount ---


def test_bincount_refuses_what_the_cpu_refuses() -> None:
    values = torch.arange(5)
    assert_refused_alike(lambda x: torch.bincount(x - 1), values)
    assert_refused_alike(lambda x: torch.bincount(x[None]), values)
    assert_refused_alike(lambda x: torch.bincount(x, minlength=-1), values)
    assert_refused_alike(lambda x: torch.bincount(x, x[:3]), values)
    assert_refused_alike(torch.bincount, torch.tensor([2**63 - 1]))


# --- unique, unique_consecutive along a dimension ---


@pytest.mark.parametrize("operator", ["unique_dim", "unique_dim_consecutive"])
def test_unique_dim_of_empty_and_nan_tensors_and_wrong_dims(operator: str) -> None:
    function = getattr(torch.ops.aten, operator)
    values = sample(4, 3)
    compare(lambda x: function(x, 0), values[:0])
    compare(lambda x: function(x, 0), torch.full((3, 2), float("nan")))
    assert_refused_alike(lambda x: function(x, 0), values[:, :0])
    assert_refused_alike(lambda x: function(x, 0), values[:0, :0])
    assert_refused_alike(lambda x: function(x, 0), values[0, 0])
    assert_refused_alike(lambda x: function(x, 2), values)


# --- mode ---


def test_mode_of_empty_and_zero_dimensional_tensors() -> None:
    compare(torch.mode, torch.tensor(3.0))
    compare(lambda x: torch.mode(x, 0), torch.ones(4, 0))
    assert_refused_alike(lambda x: torch.mode(x, 0), torch.ones(0, 4))
    assert_refused_alike(lambda x: torch.mode(x, 5), torch.ones(2, 4))
