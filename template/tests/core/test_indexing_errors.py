"""Errors of indexing: immediate ones of the host, and later ones of indices on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import reports_errors

Function = Callable[..., Any]

FAILURES: dict[str, Function] = {
    "index": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i),
    "take": lambda x, i: x.take(i),
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x.view(5, 1)),
    "scatter": lambda x, i: x.scatter(0, i, 1.0),
    "index_add": lambda x, i: x.index_add(0, i, x[:1]),
    "index_put": lambda x, i: x.index_put((i,), x[0]),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
}


@reports_errors
@pytest.mark.native
@pytest.mark.parametrize("name", FAILURES)
def test_an_index_out_of_bounds_is_named_when_the_result_is_read(name: str) -> None:
    values, index = torch.ones(5, device=DEVICE), torch.tensor([7], device=DEVICE)
    with pytest.raises(RuntimeError, match="index 7 is out of bounds for a dimension of size 5"):
        FAILURES[name](values, index).cpu()


INTO_NOTHING: dict[str, Function] = {
    "scatter": lambda x, i: x.scatter(0, i, 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i, torch.ones_like(i, dtype=x.dtype)),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i, torch.ones_like(i, dtype=x.dtype), "sum"),
    "index_add": lambda x, i: x.index_add(0, i, torch.ones_like(i, dtype=x.dtype)),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.ones_like(i, dtype=x.dtype)),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "index_put": lambda x, i: x.index_put((i,), torch.ones_like(i, dtype=x.dtype)),
    "gather": lambda x, i: x.gather(0, i),
    "take": lambda x, i: x.take(i),
    "one_hot": lambda x, i: torch.nn.functional.one_hot(i - 1),
}


@pytest.mark.parametrize("device", ["cpu", DEVICE])
@pytest.mark.parametrize("name", INTO_NOTHING)
def test_every_index_of_an_empty_dimension_is_refused(name: str, device: str) -> None:
    """No kernel runs that could check the index."""
    nothing, index = torch.zeros(0, device=device), torch.tensor([0], device=device)
    with pytest.raises((IndexError, RuntimeError)):
        INTO_NOTHING[name](nothing, index).cpu()
    if name != "one_hot":
        assert INTO_NOTHING[name](nothing, index[:0]).shape == (0,)


def test_wrong_ranks_and_dtypes_are_refused_at_once() -> None:
    values = torch.ones(5, 3, device=DEVICE)
    index = torch.tensor([0, 1], device=DEVICE)
    with pytest.raises(IndexError, match="at least one index"):
        torch.ops.aten.index(values, [])
    with pytest.raises(IndexError, match="too many indices"):
        torch.ops.aten.index(values, [index, index, index])
    with pytest.raises(IndexError, match="could not be broadcast"):
        values[index, torch.tensor([0, 1, 2], device=DEVICE)]
    with pytest.raises(IndexError, match="shape of the mask"):
        values[torch.tensor([True, False], device=DEVICE)]
    with pytest.raises(IndexError, match="must be long"):
        values[torch.tensor([0.0, 1.0], device=DEVICE)]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        values[0, 0].index_put_((torch.tensor(True, device=DEVICE),), values[0, 0])
    with pytest.raises(RuntimeError, match="shape mismatch"):
        values.index_put_((index,), torch.ones(4, device=DEVICE))
    with pytest.raises(RuntimeError, match="dtypes match"):
        values.index_put_((index,), torch.ones(2, 3, device=DEVICE, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones"):
        values.masked_scatter_(values > 0, values[0])
    with pytest.raises(RuntimeError, match="boolean masks"):
        values.masked_fill_(values, 1.0)
    with pytest.raises(RuntimeError, match="Empty tensor not supported"):
        torch.ops.aten._local_scalar_dense(values[:0])
    with pytest.raises(RuntimeError, match="scalar types: Long, Int"):
        torch.ops.aten.embedding_dense_backward(values[:2], index.float(), 4, -1, False)
    mask = torch.zeros(6, dtype=torch.bool, device=DEVICE)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        mask[1:].masked_fill_(mask[:-1], True)


def test_device_indices_of_a_cpu_tensor_are_refused() -> None:
    index = torch.tensor([0], device=DEVICE)
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu or .* \(cpu\)"):
        torch.ones(5)[index]
