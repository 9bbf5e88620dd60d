"""A capture records work and does not run it. A replay runs it on the current memory contents."""

from __future__ import annotations

import gc

import pytest
import torch
from backend import DEVICE, backend
from support import MIB, keep_busy, needs, needs_two_devices, since

pytestmark = needs(torch.float32)


def values(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, device=DEVICE)


def test_a_replay_reads_the_current_input() -> None:
    x = values(1, 2)
    graph = backend.Graph()
    with backend.graph(graph):
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 3]
    x.copy_(values(10, 20))
    assert y.tolist() == [2, 3]
    graph.replay()
    assert y.tolist() == [11, 21]


def test_a_capture_runs_no_kernel() -> None:
    x = values(1, 2)
    with backend.graph(backend.Graph()):
        x.add_(1)
    assert x.tolist() == [1, 2]


def is_captured(stream: torch.Stream) -> bool:
    with backend.stream(stream):
        captured: bool = backend.is_current_stream_capturing()
    return captured


def test_is_current_stream_capturing_is_true_only_in_a_capture() -> None:
    assert not backend.is_current_stream_capturing()
    with backend.graph(backend.Graph()):
        assert backend.is_current_stream_capturing()
        with backend.stream(backend.default_stream()):
            assert not backend.is_current_stream_capturing()
    assert not backend.is_current_stream_capturing()


@since((2, 12), "has torch.Stream.is_capturing")
def test_stream_is_capturing_is_true_only_for_the_captured_stream() -> None:
    stream = backend.Stream()
    with backend.graph(backend.Graph(), stream=stream):
        assert stream.is_capturing()
        assert not backend.default_stream().is_capturing()
    assert not stream.is_capturing()


def test_other_streams_run_during_a_capture() -> None:
    x = values(1, 2)
    with backend.graph(backend.Graph()):
        with backend.stream(backend.default_stream()):
            assert (x * 3).tolist() == [3, 6]
        x.mul_(2)
    assert x.tolist() == [1, 2]


def test_replays_on_several_streams_do_not_overlap() -> None:
    x = values(0)
    graph = backend.Graph()
    with backend.graph(graph):
        for _ in range(10):
            x.add_(1)
    torch.accelerator.synchronize()
    first, *others = [backend.Stream() for _ in range(20)]
    keep_busy(first, 0.2)
    with backend.stream(first):
        graph.replay()
    for stream in others:
        with backend.stream(stream):
            graph.replay()
    others[-1].synchronize()
    assert first.query()
    assert x.item() == 200


def test_a_replay_runs_in_stream_order() -> None:
    x = torch.zeros(1, device=DEVICE)
    graph = backend.Graph()
    with backend.graph(graph):
        x.add_(1)
    stream = backend.Stream()
    stream.wait_stream(backend.current_stream())
    with backend.stream(stream):
        for _ in range(50):
            graph.replay()
            x.mul_(2)
    stream.synchronize()
    expected = torch.zeros(1)
    for _ in range(50):
        expected.add_(1).mul_(2)
    assert torch.equal(x.cpu(), expected)


def test_streams_can_fork_and_join_in_a_capture() -> None:
    x = values(1, 2)
    other = backend.Stream()
    graph = backend.Graph()
    with backend.graph(graph):
        doubled = x * 2
        fork = torch.Event(DEVICE)
        fork.record()
        with backend.stream(other):
            other.wait_event(fork)
            assert backend.is_current_stream_capturing()
            there = doubled + 1
        here = doubled + 5
        backend.current_stream().wait_stream(other)
        total = there + here
    assert not is_captured(other)
    x.copy_(values(3, 4))
    graph.replay()
    assert total.tolist() == [18, 22]


def test_a_stream_that_does_not_join_invalidates_the_capture() -> None:
    x = values(1, 2)
    graph = backend.Graph()
    # New streams repeat after a while, but two in a row differ.
    capturing, other = backend.Stream(), backend.Stream()
    with pytest.raises(RuntimeError, match="broken"), backend.graph(graph, stream=capturing):
        other.wait_stream(backend.current_stream())
        with backend.stream(other):
            x + 1
    assert not is_captured(other)
    with pytest.raises(RuntimeError, match="capture_begin"):
        graph.replay()


def test_torch_accelerator_graph_captures_and_replays() -> None:
    graph_class = getattr(torch.accelerator, "Graph", None)  # since torch 2.12
    if graph_class is None:
        pytest.skip("this PyTorch has no torch.accelerator.Graph")
    x = values(1, 2)
    graph = graph_class()
    with torch.Stream(device=DEVICE), graph:
        y = x * 3
    graph.replay()
    assert y.tolist() == [3, 6]
    graph.reset()
    with torch.Stream(device=DEVICE), graph:
        y = x * 4
    graph.replay()
    assert y.tolist() == [4, 8]
    with pytest.raises(NotImplementedError, match="does not describe graphs"):
        graph.debug_dump("graph.dot")


@needs_two_devices
def test_a_graph_replays_on_its_device() -> None:
    x = torch.ones(2, device=f"{DEVICE}:1")
    graph = backend.Graph()
    with backend.device(1), backend.graph(graph):
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 2]


# --- Memory ---


def test_memory_of_a_graph_is_not_reused_by_other_tensors() -> None:
    x = torch.ones(MIB, device=DEVICE)
    graph = backend.Graph()
    with backend.graph(graph):
        middle = x + 1
        y = middle * 2
        del middle
    bystanders = [torch.full((MIB,), 7.0, device=DEVICE) for _ in range(4)]
    graph.replay()
    assert y[0].item() == 4
    assert all(bool((bystander == 7).all()) for bystander in bystanders)


@pytest.mark.parametrize("how", ["reset", "deletion", "an error"])
def test_memory_of_a_graph_is_freed_with_the_graph(how: str) -> None:
    x = torch.ones(8 * MIB, device=DEVICE)
    backend.synchronize()
    gc.collect()
    backend.empty_cache()
    before = backend.memory_reserved()
    graph = backend.Graph()
    try:
        with backend.graph(graph):
            y = x + 1
            if how == "an error":
                raise KeyError
    except KeyError:
        pass
    assert backend.memory_reserved() > before
    del y
    if how == "reset":
        graph.replay()
        graph.reset()
    del graph
    gc.collect()
    backend.empty_cache()
    assert backend.memory_reserved() == before


def test_a_result_outlives_its_graph() -> None:
    x = values(1, 2)
    graph = backend.Graph()
    with backend.graph(graph):
        y = x + 1
    graph.replay()
    del graph
    gc.collect()
    backend.empty_cache()
    assert y.tolist() == [2, 3]


def test_graphs_share_a_pool() -> None:
    x = values(1, 2)
    pool = backend.graph_pool_handle()
    first, second = backend.Graph(), backend.Graph()
    with backend.graph(first, pool=pool):
        y = x + 1
    with backend.graph(second, pool=first.pool()):
        z = y * 2
    assert first.pool() == second.pool() == pool
    first.replay()
    second.replay()
    assert z.tolist() == [4, 6]


def test_memory_recorded_on_another_stream_is_freed_after_the_capture() -> None:
    x = torch.ones(MIB, device=DEVICE)
    other = backend.Stream()
    graph = backend.Graph()
    before = backend.memory_stats()["active_bytes.all.current"]
    with backend.graph(graph):
        y = x + 1
        y.record_stream(other)
        del y
        z = x + 2
    graph.replay()
    assert z[0].item() == 3
    del z, graph
    gc.collect()
    backend.synchronize()
    backend.empty_cache()
    assert backend.memory_stats()["active_bytes.all.current"] == before


def test_pinned_memory_of_a_destroyed_graph_is_kept_until_its_replay_is_done() -> None:
    host = torch.ones(MIB).pin_memory()
    there = torch.zeros(MIB, device=DEVICE)
    graph = backend.Graph()
    with backend.graph(graph):
        there.copy_(host, non_blocking=True)
    side = backend.Stream()
    with backend.stream(side):
        keep_busy()
        graph.replay()
    del graph, host
    gc.collect()
    other = torch.full((MIB,), 2.0).pin_memory()
    side.synchronize()
    assert there.eq(1).all().item()
    assert other.eq(2).all()
