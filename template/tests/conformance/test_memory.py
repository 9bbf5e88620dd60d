"""Memory of operators besides arguments and results, in calls that the samples lack."""

from __future__ import annotations

import pytest
import torch
from conformance import memory
from conformance.run import Function
from conformance.samples import Arguments
from support import needs
from torch.nn import functional

pytestmark = needs(torch.float32, torch.int8, torch.int64)

MANY = 1 << 20


def numbers(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes, generator=torch.Generator().manual_seed(0)) * 2 - 1


CALLS: dict[str, tuple[Function, Arguments]] = {
    "flip": (torch.flip, Arguments(numbers(MANY).to(torch.int8), ((0,),), {})),
    "histc": (torch.histc, Arguments(numbers(MANY), (100,), {})),
    "isin": (torch.isin, Arguments(numbers(MANY), (numbers(1000),), {})),
    "bucketize": (
        torch.bucketize,
        Arguments(numbers(MANY), (numbers(1000).sort().values,), {"out_int32": True}),
    ),
    "embedding_bag": (
        functional.embedding_bag,
        Arguments(
            torch.arange(1 << 14).remainder(1000).view(256, 64),
            (numbers(1000, 256),),
            {"mode": "mean"},
        ),
    ),
    "embedding_bag, max": (
        functional.embedding_bag,
        Arguments(
            torch.arange(1 << 14).remainder(1000).view(256, 64),
            (numbers(1000, 256),),
            {"mode": "max"},
        ),
    ),
    "cdist": (torch.cdist, Arguments(numbers(500, 64), (numbers(500, 64),), {"p": 1.0})),
    "grid_sample": (
        functional.grid_sample,
        Arguments(numbers(1, 1, 512, 512), (numbers(1, 512, 512, 2),), {"align_corners": False}),
    ),
    "interpolate": (
        functional.interpolate,
        Arguments(numbers(1, 4, 256, 256), (), {"scale_factor": 2, "mode": "bilinear"}),
    ),
    "add": (torch.add, Arguments(numbers(MANY), (torch.arange(MANY, dtype=torch.int32),), {})),
    "index_add": (
        torch.index_add,
        Arguments(
            numbers(1000, 500).bfloat16(),
            (0, torch.tensor([3, 4]), numbers(2, 500).bfloat16()),
            {"alpha": 2},
        ),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_allocate_little_temporary_memory(name: str) -> None:
    function, arguments = CALLS[name]
    memory.measured(function, arguments)  # a first call may allocate memory that it keeps
    extra, given = memory.measured(function, arguments)
    assert not memory.is_much(extra, given), (extra, given)
