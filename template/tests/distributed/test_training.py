"""Training with collectives: the losses of several processes equal those of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from distributed import training
from distributed.ranks import Ranks
from support import needs

pytestmark = needs(torch.float32)


@pytest.mark.parametrize(
    "kind",
    [
        training.data_parallel,
        pytest.param(training.static_graph, marks=pytest.mark.full),
        pytest.param(training.with_hook, marks=pytest.mark.full),
        pytest.param(training.fully_sharded, marks=pytest.mark.full),
    ],
    ids=lambda kind: kind.__name__,
)
def test_losses_equal_those_of_one_process(
    group: Ranks, kind: Callable[[int, int], list[float]]
) -> None:
    expected = training.train(training.model("cpu"), 0, 1)
    for losses in group.call(kind):
        assert losses == pytest.approx(expected, rel=1e-4)


def test_a_group_without_a_backend_name_trains(pair: Ranks) -> None:
    """Module wrappers use the default backend of ``init_process_group()``."""
    expected = training.train(training.model("cpu"), 0, 1)
    for losses in pair.call(training.data_parallel):
        assert losses == pytest.approx(expected, rel=1e-4)


@pytest.mark.full
def test_sharded_matrix_products(pair: Ranks) -> None:
    assert all(pair.call(training.products))
