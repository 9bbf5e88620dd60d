"""Collectives in stream order: streams wait for their inputs, and the host does not wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend import DEVICE, ENV_PREFIX, PACKAGE
from distributed import behaviour, messages
from distributed.conftest import started
from distributed.marks import queues_messages
from distributed.ranks import Ranks
from support import is_simulator, needs_two_devices, run_python, since


def test_the_default_backend_of_the_device_is_selected(pair: Ranks) -> None:
    assert pair.call(behaviour.chosen) == [[f"{DEVICE}ccl", "gloo", f"{DEVICE}ccl"]] * 2


@queues_messages
def test_wait_does_not_wait_for_the_other_rank(pair: Ranks) -> None:
    assert pair.call(behaviour.wait_without_partner) == [[6.0], [6.0]]


def test_side_streams_see_results_and_memory_is_not_reused_early(pair: Ranks) -> None:
    assert all(all(answer) for answer in pair.call(behaviour.on_side_streams))


@needs_two_devices
def test_collectives_keep_their_order_on_several_devices(pair: Ranks) -> None:
    # 2 ranks add 1 + 5 * rank; rank 1 sends 1 + step.
    assert pair.call(behaviour.on_two_devices) == [[1.0, 2.0]] * 2


@needs_two_devices
def test_a_barrier_needs_no_current_device(pair: Ranks) -> None:
    assert pair.call(behaviour.barriers_on_own_devices) == [2.0, 2.0]


def test_callbacks_of_futures_run_in_stream_order(pair: Ranks) -> None:
    assert pair.call(behaviour.future) == [[1.5, 1.5, 1.5, 3.0, 3.0, 3.0]] * 2


@queues_messages
def test_messages_with_tags_from_any_rank_and_in_a_batch(pair: Ranks) -> None:
    zero, one = pair.call(messages.in_several_orders)
    assert zero == [[0.0] * 2, [0.0] * 5, [7.0] * 3, [1.0] * 4, 1]
    assert one == [[1.0] * 2, [2.0] * 5, [0.0] * 3, [0.0] * 4, None]


@pytest.mark.skipif(not is_simulator(), reason="only the simulator has a thread for each stream")
def test_many_tags_do_not_need_many_streams(pair: Ranks) -> None:
    for came, threads in pair.call(messages.many_tags):
        assert came == [float(tag) for tag in range(60)]
        assert threads < 10


@pytest.mark.skipif(not is_simulator(), reason="needs a setting that only the simulator has")
def test_tags_on_a_device_of_few_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A send does not wait for an earlier receive."""
    monkeypatch.setenv(f"{ENV_PREFIX}_SIMULATOR_STREAMS", "4")
    with started("device", 2, tmp_path, None) as processes:
        answers = processes.call(messages.tags_both_ways)
    assert answers == [[10.0 * (1 - rank) + tag for tag in range(6)] for rank in range(2)]


@queues_messages
def test_a_rank_can_send_to_itself(pair: Ranks) -> None:
    assert pair.call(messages.to_itself) == [
        [[0.0] * 2, [0.25] * 2, [0.5] * 2],
        [[1.0] * 2, [1.25] * 2, [1.5] * 2],
    ]


@since((2, 12), "splits groups of other backends than NCCL")
def test_groups_can_be_split(pair: Ranks) -> None:
    assert pair.call(behaviour.split) == [
        [[[3.0, 3.0], [rank + 1.0] * 2], [f"{DEVICE}ccl"] * 2, [[0, 1], [rank]]]
        for rank in range(2)
    ]


def test_profiler_names_collectives_as_with_gloo(pair: Ranks) -> None:
    expected = [(f"{DEVICE}ccl:all_reduce", [[2, 3]]), (f"{DEVICE}ccl:broadcast", [[4]])]
    assert pair.call(behaviour.profiled) == [expected] * 2


def test_subgroups_run_collectives(pair: Ranks) -> None:
    objects = [{"rank": 0}, {"rank": 1}]
    assert pair.call(behaviour.subgroups) == [
        [[1.0, 1.0], [2.0, 2.0], objects],
        [[2.0, 2.0], [2.0, 2.0], objects],
    ]


def test_the_distributed_library_is_loaded_with_the_first_group() -> None:
    run_python(
        f"""
        import sys, torch
        torch.ones(2, device="{DEVICE}")
        assert torch.{DEVICE}.collective_record() == []
        assert "{PACKAGE}._distributed" not in sys.modules
        """
    )
