"""Large tensors, sent in many pieces, and a rank that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from distributed import large
from distributed.marks import tells_of_the_hosts_failures
from distributed.ranks import Ranks, ranks
from support import needs

pytestmark = needs(torch.float32)


@pytest.mark.parametrize("name", large.LARGE)
def test_large_tensors_equal_those_of_gloo(group: Ranks, name: str) -> None:
    assert all(group.call(large.equals_gloos, name))


def test_a_sum_has_the_same_bits_on_all_ranks(group: Ranks) -> None:
    first, *others = group.call(large.sum_of_fractions)
    assert all(torch.equal(first, other) for other in others)


@tells_of_the_hosts_failures
def test_a_killed_rank_raises_an_error_on_the_others(tmp_path: Path) -> None:
    with ranks(2, tmp_path) as started:
        for connection in started.connections:
            connection.send((large.kill_last_rank, ()))
        assert started.connections[0].poll(60)
        (error, three), failure = started.connections[0].recv()
    assert failure is None
    assert error.startswith("DistBackendError: all_reduce")
    assert three == 3.0
