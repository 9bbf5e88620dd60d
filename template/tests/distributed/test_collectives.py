"""Every collective, dtype and reduction equals Gloo's result on the CPU."""

from __future__ import annotations

import pytest
import torch
from distributed import collectives
from distributed.ranks import Ranks
from support import supported


@pytest.mark.parametrize("name", collectives.MOVES)
def test_values_arrive_as_by_gloo(group: Ranks, name: str) -> None:
    for dtype in supported():
        assert not any(group.call(collectives.moved, name, dtype)), dtype


@pytest.mark.parametrize("operation", collectives.OPERATIONS)
@pytest.mark.parametrize("name", collectives.REDUCTIONS)
def test_reductions_equal_gloos(group: Ranks, name: str, operation: str) -> None:
    # As PyTorch brings complex tensors before a backend, reductions of them are those of real ones.
    dtypes = [dtype for dtype in supported() if not dtype.is_complex]
    assert not any(group.call(collectives.reduced, name, operation, dtypes))


@pytest.mark.parametrize("name", ["all_reduce", "reduce"])
def test_complex_numbers_are_summed(group: Ranks, name: str) -> None:
    dtypes = supported(torch.complex64, torch.complex128)
    assert not any(group.call(collectives.reduced, name, "SUM", dtypes))
