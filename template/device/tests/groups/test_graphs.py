"""Graphs: calls that can be recorded, calls that cannot, and launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs_property
from host_memory import address_of, at
from making import Make
from runtime.work import wait_for_failure

GROUP = "graphs"
COUNT = np.arange(1000, dtype=np.int32)

Function = Callable[..., Any]


@pytest.fixture
def capture(api: ModuleType) -> Iterator[Callable[..., Any]]:
    """Captures the work that functions enqueue on a stream. Graphs are destroyed after the test."""
    graphs = []

    def make(stream: Any, *enqueue: Callable[[Any], object]) -> Any:
        api.begin_capture(stream)
        for function in enqueue:
            function(stream)
        graphs.append(api.end_capture(stream))
        return graphs[-1]

    yield make
    for graph in graphs:
        api.destroy_graph(graph)


def test_captured_work_runs_at_each_launch_of_the_graph(
    api: ModuleType, stream: Any, make: Make, capture: Function
) -> None:
    counters = make.counters(COUNT)
    graph = capture(stream, lambda s: counters.add(s, 2))
    api.synchronize(stream)
    assert (counters.read() == COUNT).all()
    for _ in range(3):
        api.launch_graph(graph, stream)
    api.synchronize(stream)
    assert (counters.read() == COUNT + 6).all()


def test_a_graph_keeps_the_order_of_kernels_copies_and_fills(
    api: ModuleType, stream: Any, make: Make, capture: Function
) -> None:
    first, second = make.counters(COUNT), make.counters(COUNT)

    def enqueue(stream: Any) -> None:
        first.add(stream, 5)
        api.copy_bytes(stream, (second.address, 0), (first.address, 0), first.bytes)
        api.fill_bytes(stream, first.address, 0, first.bytes)
        first.add(stream, second.view)

    graph = capture(stream, enqueue)
    for round in range(1, 4):
        api.launch_graph(graph, stream)
        api.synchronize(stream)
        assert (first.read() == COUNT + 5 * round).all()
        assert (second.read() == first.read()).all()


def test_a_launch_reads_the_current_page_locked_memory(
    api: ModuleType, stream: Any, make: Make, capture: Function
) -> None:
    counters = make.counters(COUNT)
    address = make.pinned(counters.bytes)
    host = at(address, counters.bytes).view(np.int32)
    copy = (counters.address, 0), (address, api.HOST), counters.bytes
    graph = capture(stream, lambda s: api.copy_bytes(s, *copy))
    for value in (3, 4):
        host[:] = value
        api.launch_graph(graph, stream)
        api.synchronize(stream)
        assert (counters.read() == value).all()


def test_a_launch_waits_for_its_stream(
    api: ModuleType, stream: Any, gate: Any, make: Make, capture: Function
) -> None:
    counters = make.counters(COUNT)
    graph = capture(stream, lambda s: counters.add(s, counters.view))
    gate.hold(stream)
    counters.add(stream, 1)
    api.launch_graph(graph, stream)
    assert not api.is_idle(stream)
    gate.open()
    api.synchronize(stream)
    assert (counters.read() == (COUNT + 1) * 2).all()


def test_streams_fork_and_join_in_a_capture_by_events(
    api: ModuleType, make: Make, capture: Function
) -> None:
    origin, branch = make.stream(), make.stream()
    fork, join = make.event(), make.event()
    left, right = make.counters(COUNT), make.counters(COUNT)

    def enqueue(stream: Any) -> None:
        left.add(stream, 10)
        api.record(fork, stream)
        api.wait(branch, fork)
        assert api.is_capturing(branch)
        right.add(branch, left.view)
        api.record(join, branch)
        api.wait(stream, join)
        left.add(stream, right.view)

    graph = capture(origin, enqueue)
    assert not api.is_capturing(branch)
    api.synchronize(branch)
    assert (right.read() == COUNT).all()
    api.launch_graph(graph, origin)
    api.synchronize(origin)
    assert (right.read() == 2 * COUNT + 10).all()
    assert (left.read() == 3 * COUNT + 20).all()


def test_work_that_is_not_joined_invalidates_the_capture(
    api: ModuleType, refuses: Function, make: Make
) -> None:
    origin, branch, fork = make.stream(), make.stream(), make.event()
    counters = make.counters(COUNT)
    api.begin_capture(origin)
    api.record(fork, origin)
    api.wait(branch, fork)
    counters.add(branch, 1)
    refuses(api.end_capture, origin)
    assert not api.is_capturing(origin)
    assert not api.is_capturing(branch)
    counters.add(branch, 1)
    api.synchronize(branch)
    assert (counters.read() == COUNT + 1).all()


@dataclass
class Captured:
    """A stream that is being captured, an event of the capture and another one, and numbers."""

    api: ModuleType
    stream: Any
    inside: Any
    outside: Any
    counters: Any


UNRECORDABLE: dict[str, Callable[[Captured], object]] = {
    "synchronize_stream": lambda it: it.api.synchronize_stream(it.stream),
    "query_stream": lambda it: it.api.query_stream(it.stream),
    "synchronize_device": lambda it: it.api.synchronize_device(0),
    "query_event": lambda it: it.api.query_event(it.inside),
    "synchronize_event": lambda it: it.api.synchronize_event(it.inside),
    "wait": lambda it: it.api.wait(it.stream, it.outside),
    "launch_host": lambda it: it.api.launch_host(it.stream, print),
    "pageable copy": lambda it: it.api.copy_bytes(
        it.stream, (it.counters.address, 0), (address_of(COUNT), it.api.HOST), COUNT.nbytes
    ),
}


@pytest.mark.parametrize("call", UNRECORDABLE.values(), ids=UNRECORDABLE)
def test_calls_that_cannot_be_captured_throw_and_invalidate_the_capture(
    api: ModuleType, refuses: Function, make: Make, call: Callable[..., object]
) -> None:
    if call is UNRECORDABLE["launch_host"]:
        needs_property("host_functions")
    stream, other, inside, outside = make.stream(), make.stream(), make.event(), make.event()
    counters = make.counters(COUNT)
    api.record(outside, other)
    api.begin_capture(stream)
    api.record(inside, stream)
    refuses(call, Captured(api, stream, inside, outside, counters))
    refuses(api.end_capture, stream)
    counters.add(stream, 1)
    api.synchronize(stream)
    assert (counters.read() == COUNT + 1).all()


def test_an_event_that_was_recorded_in_a_capture_can_be_recorded_again(
    api: ModuleType, stream: Any, make: Make, capture: Function
) -> None:
    event = make.event()
    capture(stream, lambda s: api.record(event, s))
    api.record(event, stream)
    api.synchronize(event)
    assert api.is_complete(event)


def test_captures_begin_once_and_end_on_their_stream(
    api: ModuleType, refuses: Function, make: Make
) -> None:
    stream, branch, fork = make.stream(), make.stream(), make.event()
    refuses(api.end_capture, stream)
    api.begin_capture(stream)
    refuses(api.begin_capture, stream)
    api.record(fork, stream)
    api.wait(branch, fork)
    refuses(api.end_capture, branch)
    api.destroy_graph(api.end_capture(stream))
    assert not api.is_capturing(stream)


def test_launches_of_one_graph_run_one_after_the_other(
    api: ModuleType, make: Make, capture: Function
) -> None:
    streams = make.stream(), make.stream()
    counters = make.counters(COUNT)
    graph = capture(streams[0], *[lambda s: counters.add(s, 1)] * 5)
    for launch in range(200):
        api.launch_graph(graph, streams[launch % 2])
    for stream in streams:
        api.synchronize(stream)
    assert (counters.read() == COUNT + 1000).all()


def test_a_graph_may_be_destroyed_while_a_launch_waits(
    api: ModuleType, stream: Any, gate: Any, make: Make
) -> None:
    counters = make.counters(COUNT)
    api.begin_capture(stream)
    counters.add(stream, 1)
    graph = api.end_capture(stream)
    gate.hold(stream)
    api.launch_graph(graph, stream)
    api.destroy_graph(graph)
    gate.open()
    api.synchronize(stream)
    assert (counters.read() == COUNT + 1).all()


def test_a_graph_is_launched_on_its_own_device(
    api: ModuleType,
    refuses: Function,
    stream: Any,
    second_device: int,
    make: Make,
    capture: Function,
) -> None:
    graph = capture(stream)
    refuses(api.launch_graph, graph, make.stream(second_device))


def test_a_stream_of_another_device_does_not_join(
    api: ModuleType, refuses: Function, second_device: int, make: Make
) -> None:
    stream, far, event = make.stream(), make.stream(second_device), make.event()
    api.begin_capture(stream)
    api.record(event, stream)
    refuses(api.wait, far, event)
    assert not api.is_capturing(far)
    api.destroy_graph(api.end_capture(stream))
    api.synchronize(far)


def test_a_failure_within_a_graph_names_its_operation_and_the_rest_runs(
    api: ModuleType, stream: Any, make: Make, capture: Function
) -> None:
    needs_property("reports_errors")
    counters, zeros = make.counters(COUNT), make.counters(COUNT * 0)
    behind = make.counters(COUNT)
    graph = capture(stream, lambda s: counters.divide(s, zeros), lambda s: behind.add(s, 1))
    for launches in (1, 2):
        api.launch_graph(graph, stream)
        failed = wait_for_failure(api, stream)
        assert failed.operation == "the operation under test"
        assert failed.stream == stream
        api.acknowledge_stream(stream)
        assert (behind.read() == COUNT + launches).all()


def test_random_numbers_differ_from_launch_to_launch(
    api: ModuleType, stream: Any, make: Make, capture: Function
) -> None:
    state, drawn, wanted = make.buffer(16), make.buffer(4000), make.buffer(4000)

    def draw(stream: Any, buffer: Any, philox: Any) -> None:
        out = buffer.view(0, api.DType.float32, [1000], [1])
        reason = api.random(stream, api.RandomOp.uniform, out, philox, 0.0, 1.0)
        if reason is not None:
            pytest.skip(f"the device does not support random numbers: {reason}")

    captured = api.PhiloxState(0, 7, state.address)
    graph = capture(stream, lambda s: draw(s, drawn, captured))
    seen = []
    for seed, offset in ((1, 0), (1, 250), (2, 0)):
        state.write(np.asarray([seed, offset], np.uint64).view(np.uint8))
        api.launch_graph(graph, stream)
        draw(stream, wanted, api.PhiloxState(seed, offset + 7))
        api.synchronize(stream)
        assert drawn.read() == wanted.read()
        seen.append(drawn.read())
    assert len(set(seen)) == 3
