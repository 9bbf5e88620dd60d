"""Every collective, dtype and reduction equals Gloo's result on the CPU."""

from __future__ import annotations

import pytest
import torch
from distributed import collectives
from distributed.marks import queues_messages
from distributed.ranks import Ranks
from support import needs, supported

MOVES = [
    pytest.param(name, marks=queues_messages if name == "send and recv" else ())
    for name in collectives.MOVES
]


@pytest.mark.parametrize("name", MOVES)
def test_collectives_move_the_values_of_gloo(group: Ranks, name: str) -> None:
    for dtype in supported():
        assert not any(group.call(collectives.moved, name, dtype)), dtype


@pytest.mark.parametrize("operation", collectives.OPERATIONS)
@pytest.mark.parametrize("name", collectives.REDUCTIONS)
def test_reductions_equal_those_of_gloo(group: Ranks, name: str, operation: str) -> None:
    # PyTorch passes complex tensors to a backend as real ones, so reductions of them are the same.
    dtypes = [dtype for dtype in supported() if not dtype.is_complex]
    assert not any(group.call(collectives.reduced, name, operation, dtypes))


@pytest.mark.parametrize("name", ["all_reduce", "reduce"])
def test_complex_numbers_are_summed(group: Ranks, name: str) -> None:
    dtypes = supported(torch.complex64, torch.complex128)
    assert not any(group.call(collectives.reduced, name, "SUM", dtypes))


def test_collectives_accept_lists_of_different_shapes(group: Ranks) -> None:
    assert all(all(answer) for answer in group.call(collectives.uneven))


@needs(torch.float32)
def test_premul_sum_multiplies_before_the_sum(group: Ranks) -> None:
    size = group.size
    total = size * (size + 1) / 2
    for rank, (first, second, row, rows) in enumerate(group.call(collectives.premultiplied)):
        assert first == [total / 2] * 3
        assert second == ([total * 2] * 3 if rank == 0 else [])
        assert (row, rows) == ([total * 3], [rank + 1.0] * size)
