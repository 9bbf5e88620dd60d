"""Reductions, scans and sorting against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import FLOATING, INTEGERS, assert_same, names, needs, sample, supported

REDUCTIONS = names("sum prod mean amax amin all any")
TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-5, torch.float64: 1e-10}


def compare(function: Callable[[torch.Tensor], Any], values: torch.Tensor) -> None:
    try:
        expected = function(values)
    except (RuntimeError, IndexError) as error:
        with pytest.raises((RuntimeError, IndexError)):
            function(values.to(DEVICE))
        assert str(error)
        return
    actual = function(values.to(DEVICE))
    if isinstance(expected, torch.Tensor):
        actual, expected = (actual,), (expected,)
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        if theirs.dtype in TOLERANCE:
            tolerance = TOLERANCE[theirs.dtype]
            assert_same(mine, theirs, rtol=tolerance, atol=tolerance)
        else:
            assert_same(mine, theirs)


def accumulators(dtype: torch.dtype) -> bool:
    """Return whether the results of reducing ``dtype`` are supported."""
    return dtype.is_floating_point or torch.int64 in supported()


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool), ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str, dtype: torch.dtype) -> None:
    if not accumulators(dtype) or (name in ("all", "any") and torch.bool not in supported()):
        pytest.skip(f"the result of {name} of {dtype} has a dtype that was left out")
    function = getattr(torch, name)
    values = sample(3, 4, 5, dtype=dtype, low=-2, high=2)
    for view in (values, values.transpose(0, 2), values[:, ::2], values[:1].expand(4, -1, -1)):
        compare(function, view)
        for dim in (0, 1, -1):
            compare(partial(function, dim=dim), view)
            compare(partial(function, dim=dim, keepdim=True), view)
    if name not in ("prod",):
        compare(lambda x: function(x, (0, 2)), values)


@needs(torch.float32)
@pytest.mark.parametrize(
    "function",
    [
        torch.sum,
        torch.prod,
        torch.mean,
        torch.amax,
        lambda x: x.sum(0),
        lambda x: x.amax(1),
        lambda x: x.argmax(),
        lambda x: x.mean(0),
    ],
)
def test_empty_tensors_reduce_as_on_the_cpu(function: Callable[[torch.Tensor], Any]) -> None:
    compare(function, torch.empty(0, 3))


@needs(torch.float32, torch.int64)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.var(),
        lambda x: x.std(1),
        lambda x: torch.var_mean(x, 0),
        lambda x: x.norm(),
        lambda x: torch.linalg.vector_norm(x, 1, dim=1),
        lambda x: x.logsumexp(1),
        lambda x: x.argmax(1),
        lambda x: x.argmin(),
        lambda x: x.max(1),
        lambda x: x.min(0),
        lambda x: x.max(),
        lambda x: x.median(1),
        lambda x: x.cumsum(1),
        lambda x: x.cumprod(0),
        lambda x: x.cummax(1),
        lambda x: x.sort(1),
        lambda x: x.sort(dim=0, descending=True, stable=True),
        lambda x: x.topk(3, 1),
        lambda x: x.argsort(1),
        lambda x: x.softmax(1),
        lambda x: x.log_softmax(0),
        lambda x: x.aminmax(),
        lambda x: torch.nansum(x),
        lambda x: torch.count_nonzero(x > 0, 1),
        lambda x: x.unique(),
        lambda x: torch.nn.functional.layer_norm(x, (9,)),
    ],
)
def test_other_reductions(function: Callable[[torch.Tensor], Any]) -> None:
    values = sample(7, 9)
    for view in (values, sample(9, 7).T, sample(7, 18)[:, ::2]):
        compare(function, view)


@needs(torch.float32, torch.float64)
def test_dtype_of_the_result_can_be_chosen() -> None:
    compare(lambda x: x.sum(dtype=torch.float64), sample(100))
    compare(lambda x: x.mean(0, dtype=torch.float64), sample(5, 6))


@needs(torch.float32)
def test_out_of_a_reduction_is_resized() -> None:
    values = sample(4, 5)
    out = torch.empty(0, device=DEVICE)
    assert torch.sum(values.to(DEVICE), 1, out=out) is out
    assert_same(out, values.sum(1))


@needs(torch.float32)
def test_long_sums_stay_accurate() -> None:
    values = torch.full((2**20,), 0.1)
    assert values.to(DEVICE).sum().item() == pytest.approx(0.1 * 2**20, rel=1e-6)


@needs(torch.float32)
def test_nan_spreads_through_maximum_and_sum() -> None:
    values = torch.tensor([1.0, float("nan"), 3.0], device=DEVICE)
    assert values.amax().isnan().item()
    assert values.sum().isnan().item()
