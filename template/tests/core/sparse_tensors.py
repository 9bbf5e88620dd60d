"""Sparse CPU tensors, functions of them, and a comparison of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from backend import DEVICE
from support import sample

Function = Callable[[torch.Tensor], Any]

ROWS, COLUMNS = 4, 5
PLACES = torch.tensor([[0, 2, 2, 0, 3], [1, 0, 3, 1, 4]])


def thin(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a dense matrix with many zeros."""
    values = sample(ROWS, COLUMNS, dtype=dtype, seed=0)
    return values.masked_fill(sample(ROWS, COLUMNS, seed=1) < 1, 0)


def duplicated(*dense: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor with two elements at one index."""
    values = sample(PLACES.shape[1], *dense, dtype=dtype)
    return torch.sparse_coo_tensor(PLACES, values, (ROWS, COLUMNS, *dense))


MADE: dict[str, Callable[[], torch.Tensor]] = {
    "coalesced": lambda: thin().to_sparse(),
    "duplicated": duplicated,
    "hybrid": lambda: duplicated(3),
    "empty": lambda: torch.sparse_coo_tensor(size=(ROWS, COLUMNS)),
    "int64": lambda: thin(torch.int64).to_sparse(),
    "csr": lambda: thin().to_sparse_csr(),
    "csc": lambda: thin().to_sparse_csc(),
    "bsr": lambda: thin().to_sparse_bsr((2, 1)),
    "bsc": lambda: thin().to_sparse_bsc((2, 1)),
    "empty csr": lambda: torch.zeros(ROWS, COLUMNS).to_sparse_csr(),
}
"""Sparse tensors of the CPU."""

TALL = sample(COLUMNS, 3, seed=5)
FULL = sample(ROWS, COLUMNS, seed=6)


def moved_like(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return ``tensor`` with the device and dtype of ``other``."""
    return tensor.to(other.device, other.dtype)


SHAPES: dict[str, Function] = {
    "to_dense": lambda s: s.to_dense(),
    "to_sparse": lambda s: s.to_sparse(),
    "to_sparse_csr": lambda s: s.to_sparse_csr(),
    "to_sparse_csc": lambda s: s.to_sparse_csc(),
    "to_sparse_bsr": lambda s: s.to_sparse_bsr((2, 1)),
    "clone": lambda s: s.clone(),
    "copy_": lambda s: torch.zeros_like(s).copy_(s),
    "zero_": lambda s: s.clone().zero_(),
    "to": lambda s: s.to(torch.float32),
    "t": lambda s: s.t(),
    "select": lambda s: s[1],
    "cat": lambda s: torch.cat([s, s]),
    "index_select": lambda s: s.index_select(0, torch.tensor([2, 0], device=s.device)),
    "dimensions": lambda s: (s.sparse_dim(), s.dense_dim(), s._nnz()),
    "sparse_mask": lambda s: moved_like(FULL, s).sparse_mask(s),
}
"""Functions that rearrange a sparse tensor."""

SUMS: dict[str, Function] = {
    "coalesce": lambda s: s.coalesce(),
    "add": lambda s: s + s,
    "add_": lambda s: s.clone().add_(s),
    "sub": lambda s: s - s * 3,
    "alpha": lambda s: torch.add(s, s, alpha=-2),
    "fractional alpha in place": lambda s: s.clone().add_(s, alpha=1.5),
    "add to dense": lambda s: moved_like(FULL, s) + s,
    "add to dense in place": lambda s: moved_like(FULL, s).clone().add_(s, alpha=3),
    "out": lambda s: torch.add(s, s, out=torch.zeros_like(s)),
    "sum": lambda s: s.sum(),
    "sparse.sum": lambda s: torch.sparse.sum(s, 0),
    "sum of rows": lambda s: s.sum(1, keepdim=True),
    "norm": lambda s: s.norm(),
}

PRODUCTS: dict[str, Function] = {
    "by a number": lambda s: s * 3,
    "by a CPU tensor": lambda s: s * torch.tensor(2, dtype=s.dtype),
    "by a 0-dim tensor": lambda s: s * torch.tensor(2, dtype=s.dtype, device=s.device),
    "in place": lambda s: s.clone().mul_(2),
    "by itself": lambda s: s * s,
    "by another": lambda s: s * s.clone().abs_(),
    "by a dense one": lambda s: s * moved_like(FULL, s),
    "divided": lambda s: s / 2,
    "pow": lambda s: s**2,
    "mm": lambda s: torch.mm(s, moved_like(TALL, s)),
    "sparse.mm": lambda s: torch.sparse.mm(s, moved_like(TALL, s)),
    "from the left": lambda s: moved_like(TALL, s).t() @ s.t(),
    "mv": lambda s: s @ moved_like(TALL, s)[:, 0],
    "addmm": lambda s: torch.addmm(
        moved_like(TALL, s)[:4], s, moved_like(TALL, s), beta=2, alpha=3
    ),
    "addmm of a row": lambda s: torch.addmm(moved_like(TALL, s)[0], s, moved_like(TALL, s)),
    "linear": lambda s: torch.nn.functional.linear(moved_like(TALL, s).t(), s),
    "of two": lambda s: torch.sparse.mm(s, s.t()),
}


def compare(actual: Any, expected: Any) -> None:
    """Compare a result of the device with one of the CPU; the order of equal indices may differ."""
    if not isinstance(expected, torch.Tensor):
        assert actual == expected
        return
    assert actual.device.type == DEVICE
    assert (actual.layout, actual.dtype) == (expected.layout, expected.dtype)
    assert actual.shape == expected.shape
    if expected.layout is torch.sparse_coo:
        assert actual.sparse_dim() == expected.sparse_dim()
        actual, expected = actual.cpu().coalesce(), expected.coalesce()
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)
