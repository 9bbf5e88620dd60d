"""Models that PyTorch divides among processes train as in one process on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from distributed import checkpoints, parallel, training
from distributed.marks import needs_kernel
from distributed.ranks import Ranks, ranks
from support import has_function, needs

pytestmark = needs(torch.float32)


def close(losses: list[float], expected: list[float]) -> bool:
    assert len(expected) > 0
    return losses == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_tensor_parallel_training_equals_one_process(group: Ranks) -> None:
    for losses in group.call(parallel.tensor_parallel):
        assert close(losses, parallel.single_process_losses())


@needs_kernel("aten::_scaled_dot_product_fused_attention_overrideable")
@pytest.mark.skipif(
    not has_function("families", "attention"),
    reason="PyTorch divides fused attention only, and the device has none",
)
def test_context_parallel_attention_equals_one_process(group: Ranks) -> None:
    expected = parallel.single_process_attention()
    for results in group.call(parallel.context_parallel):
        for mine, theirs in zip(results, expected, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    "schedule",
    [
        "ScheduleGPipe",
        "Schedule1F1B",
        pytest.param("ScheduleInterleaved1F1B", marks=pytest.mark.full),
    ],
)
def test_pipeline_parallel_training_equals_one_process(group: Ranks, schedule: str) -> None:
    size = group.size
    layers = 2 * size if schedule == "ScheduleInterleaved1F1B" else size
    expected = parallel.single_process_losses(layers)
    for losses in group.call(parallel.pipelined, schedule):
        assert close(losses, expected)


def test_zero_redundancy_optimizer_equals_one_process(group: Ranks) -> None:
    module = parallel.network("cpu")
    expected = training.train(module, 0, 1, parallel.adam(module))
    for losses in group.call(parallel.zero_redundancy):
        assert close(losses, expected)


def test_distributed_sampler_divides_the_rows(group: Ranks) -> None:
    size = group.size
    expected = parallel.read(parallel.network("cpu"), parallel.sampled(size, range(size)))
    for weights in group.call(parallel.own_rows):
        assert close(weights, expected)


@pytest.mark.full
def test_sharded_and_tensor_parallel_training_equals_one_process(tmp_path: Path) -> None:
    with ranks(4, tmp_path) as four:
        for losses in four.call(parallel.sharded_and_tensor_parallel):
            assert close(losses, parallel.single_process_losses())


def test_a_checkpoint_of_several_processes_loads_in_one(group: Ranks, tmp_path: Path) -> None:
    expected = checkpoints.single_process_losses()
    for losses in group.call(checkpoints.first_half, str(tmp_path)):
        assert close(losses, expected[: checkpoints.HALF])
    assert close(checkpoints.second_half(0, 1, str(tmp_path)), expected[checkpoints.HALF :])


def test_a_checkpoint_of_one_process_loads_in_several(group: Ranks, tmp_path: Path) -> None:
    checkpoints.first_half(0, 1, str(tmp_path))
    for losses in group.call(checkpoints.second_half, str(tmp_path)):
        assert close(losses, checkpoints.single_process_losses()[checkpoints.HALF :])


@pytest.mark.full
@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2)])
def test_a_checkpoint_loads_in_another_number_of_processes(
    tmp_path: Path, before: int, after: int
) -> None:
    folder = str(tmp_path / "checkpoint")
    with ranks(before, tmp_path) as first:
        first.call(checkpoints.first_half, folder)
    with ranks(after, tmp_path) as second:
        for losses in second.call(checkpoints.second_half, folder):
            assert close(losses, checkpoints.single_process_losses()[checkpoints.HALF :])
