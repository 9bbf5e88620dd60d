"""Sums of many narrow numbers in one element are computed in float32 and rounded once. The CPU's
kernels may add float16 numbers one by one, and then stop growing at 2048 times the addend."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, supported

pytestmark = needs(torch.float32, torch.int64)

NARROW = supported(torch.float16, torch.bfloat16)
Sum = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def gradient(
    table: torch.Tensor, look_up: Callable[[torch.Tensor], torch.Tensor], grad: torch.Tensor
) -> torch.Tensor:
    """Return the gradient of ``table``, the sum over the looked-up elements."""
    leaf = table.clone().requires_grad_()
    look_up(leaf).backward(grad)
    assert leaf.grad is not None
    return leaf.grad


# Each adds all of `source` to the one element of `out`; all of `index` is 0.
SUMS: dict[str, Sum] = {
    "index_add": lambda out, index, source: out.index_add(0, index, source),
    "index_add_": lambda out, index, source: out.index_add_(0, index, source),
    "index_put": lambda out, index, source: out.index_put((index,), source, accumulate=True),
    "put": lambda out, index, source: out.put_(index, source, accumulate=True),
    "scatter_add": lambda out, index, source: out.scatter_add(0, index, source),
    "scatter": lambda out, index, source: out.scatter_(0, index, source, reduce="add"),
    "scatter_reduce": lambda out, index, source: out.scatter_reduce(0, index, source, "sum"),
    "index_add of rows": lambda out, index, source: out.unsqueeze(1).index_add_(
        0, index, source.unsqueeze(1)
    )[0],
    "embedding": lambda out, index, source: gradient(
        out.unsqueeze(1),
        lambda table: torch.nn.functional.embedding(index, table),
        source.unsqueeze(1),
    )[0],
    "gather": lambda out, index, source: gradient(out, lambda x: x.gather(0, index), source),
    "index": lambda out, index, source: gradient(out, lambda x: x[index], source),
    "index_select": lambda out, index, source: gradient(
        out, lambda x: x.index_select(0, index), source
    ),
    "expand": lambda out, index, source: gradient(out, lambda x: x.expand(source.shape), source),
    "cumsum": lambda out, index, source: source.cumsum(0)[-1:],
    "sum": lambda out, index, source: source.sum().unsqueeze(0),
}


@pytest.mark.native
@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str, dtype: torch.dtype, expanded: bool) -> None:
    count = 20000
    source = torch.full((1,), 0.25, dtype=dtype, device=DEVICE).expand(count)
    index = torch.zeros(1, dtype=torch.int64, device=DEVICE).expand(count)
    if not expanded:
        source, index = source.contiguous(), index.contiguous()
    actual = SUMS[name](torch.zeros(1, dtype=dtype, device=DEVICE), index, source)
    assert_same(actual, torch.tensor([count / 4], dtype=dtype), rtol=0, atol=0)


@pytest.mark.native
@pytest.mark.parametrize("dtype", NARROW)
def test_scaled_addends_are_not_rounded(dtype: torch.dtype) -> None:
    count, alpha = 3000, 1e-8  # float16 cannot represent 1e-8
    index = torch.zeros(count, dtype=torch.int64)
    source = torch.full((count,), 10000.0, dtype=dtype)
    expected = torch.ones(1).double() + alpha * source.double().sum()
    actual = torch.ones(1, dtype=dtype, device=DEVICE).index_add_(
        0, index.to(DEVICE), source.to(DEVICE), alpha=alpha
    )
    assert_same(actual, expected.to(dtype), rtol=0, atol=0)


@pytest.mark.native
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("include_self", [False, True])
def test_means_of_more_elements_than_the_dtype_can_count(
    dtype: torch.dtype, include_self: bool
) -> None:
    count = 70000
    source = torch.full((count,), 0.75, dtype=dtype, device=DEVICE)
    index = torch.zeros(count, dtype=torch.int64, device=DEVICE)
    expected = torch.full((1,), 0.75, dtype=dtype)
    out = expected.to(DEVICE)
    for actual in (
        out.scatter_reduce(0, index, source, "mean", include_self=include_self),
        out.index_reduce(0, index, source, "mean", include_self=include_self),
    ):
        assert_same(actual, expected, rtol=0, atol=0)
