"""Activity records: their work, times and correlation numbers."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs, needs_property
from making import Make
from runtime.work import wait_for_failure

GROUP = "profiling"
COUNT = np.arange(1000, dtype=np.int32)
MILLISECOND = 1_000_000


def take_all(api: ModuleType) -> list[Any]:
    """All records."""
    taken: list[Any] = []
    while some := api.take_activities(100):
        taken += some
    return taken


@pytest.fixture
def profile(api: ModuleType) -> Iterator[Callable[..., list[Any]]]:
    """Calls a function while profiling, and returns the records of its work on a stream."""

    def run(stream: Any, function: Callable[[], object]) -> list[Any]:
        take_all(api)
        api.start_profiling()
        function()
        api.stop_profiling()
        api.synchronize(stream)
        return [activity for activity in take_all(api) if activity.stream == stream]

    yield run
    api.stop_profiling()
    take_all(api)


def test_a_kernel_has_a_record_with_its_name_and_its_number(
    stream: Any, make: Make, profile: Callable[..., list[Any]], api: ModuleType
) -> None:
    counters = make.counters(COUNT)
    (record,) = profile(stream, lambda: counters.add(stream, 1, correlation=42))
    assert record.kind is api.ActivityKind.KERNEL
    assert record.name == "the operation under test"
    assert record.correlation == 42
    assert record.device == 0
    assert record.bytes == 0
    assert record.start_ns <= record.end_ns
    assert (counters.read() == COUNT + 1).all()


def test_copies_and_fills_have_records_with_their_bytes(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    buffer, pinned = make.buffer(4096), make.pinned(4096)

    def enqueue() -> None:
        api.fill_bytes(stream, buffer.address, 1, 4096)
        api.copy_bytes(stream, (pinned, api.HOST), (buffer.address, 0), 100)

    fill, copy = profile(stream, enqueue)
    assert (fill.kind, fill.name, fill.bytes) == (api.ActivityKind.FILL, "fill_bytes", 4096)
    assert (copy.kind, copy.name, copy.bytes) == (api.ActivityKind.COPY, "copy_bytes", 100)
    assert fill.correlation == copy.correlation == 0


def test_copies_and_fills_have_the_number_set_by_correlate(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    buffer, host = make.buffer(COUNT.nbytes), COUNT.copy()

    def enqueue() -> None:
        api.correlate(7)
        api.fill_bytes(stream, buffer.address, 1, COUNT.nbytes)
        api.copy_bytes(stream, (host.ctypes.data, api.HOST), (buffer.address, 0), host.nbytes)
        other = threading.Thread(
            target=api.fill_bytes, args=(stream, buffer.address, 2, COUNT.nbytes)
        )
        other.start()
        other.join()
        api.correlate(0)
        api.fill_bytes(stream, buffer.address, 3, COUNT.nbytes)

    assert [record.correlation for record in profile(stream, enqueue)] == [7, 7, 0, 0]


def test_work_of_a_graph_has_the_number_of_its_launch(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    needs("launch_graph")
    counters = make.counters(COUNT)
    api.begin_capture(stream)
    counters.add(stream, 1, correlation=42)
    graph = api.end_capture(stream)

    def enqueue() -> None:
        for number in (7, 8):
            api.correlate(number)
            api.launch_graph(graph, stream)
        api.correlate(0)

    records = profile(stream, enqueue)
    api.destroy_graph(graph)
    assert [record.correlation for record in records] == [7, 8]
    assert {record.name for record in records} == {"the operation under test"}


def test_a_copy_with_pageable_memory_has_a_record(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    buffer, host = make.buffer(COUNT.nbytes), COUNT.copy()
    locations = (buffer.address, 0), (host.ctypes.data, api.HOST)
    (record,) = profile(stream, lambda: api.copy_bytes(stream, *locations, host.nbytes))
    assert (record.kind, record.bytes) == (api.ActivityKind.COPY, host.nbytes)


def test_host_functions_and_waits_have_records(
    api: ModuleType, make: Make, gate: Any, profile: Callable[..., list[Any]]
) -> None:
    stream, other, event = make.stream(), make.stream(), make.event()
    gate.hold(other)
    api.record(event, other)

    def enqueue() -> None:
        api.wait(stream, event)
        api.launch_host(stream, lambda: None)
        gate.open()

    wait, function = profile(stream, enqueue)
    assert wait.kind is api.ActivityKind.WAIT
    assert function.kind is api.ActivityKind.HOST_FUNCTION


def test_records_come_in_the_order_of_the_work_and_do_not_overlap_on_a_stream(
    stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    counters = make.counters(COUNT)

    def enqueue() -> None:
        for number in range(1, 251):
            counters.add(stream, 1, correlation=number)

    records = profile(stream, enqueue)
    assert [record.correlation for record in records] == list(range(1, 251))
    for earlier, later in itertools.pairwise(records):
        assert earlier.end_ns <= later.start_ns


def test_nothing_is_recorded_without_profiling(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    counters = make.counters(COUNT)
    profile(stream, lambda: counters.add(stream, 1))
    counters.add(stream, 1)
    api.synchronize(stream)
    assert [record for record in take_all(api) if record.stream == stream] == []


def test_records_can_be_read_in_parts(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    counters = make.counters(COUNT)
    profile(stream, lambda: None)
    api.start_profiling()
    for number in (1, 2, 3):
        counters.add(stream, 1, correlation=number)
    api.synchronize(stream)
    api.stop_profiling()
    taken = [[r.correlation for r in api.take_activities(most)] for most in (2, 2, 2)]
    assert taken == [[1, 2], [3], []]


def test_a_failure_has_a_record_too(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    needs_property("reports_errors")
    counters, zeros = make.counters(COUNT), make.counters(COUNT * 0)

    def enqueue() -> None:
        counters.divide(stream, zeros)
        wait_for_failure(api, stream)
        api.acknowledge_stream(stream)

    assert len(profile(stream, enqueue)) == 1


def test_the_clock_is_related_to_the_hosts(
    api: ModuleType, stream: Any, make: Make, profile: Callable[..., list[Any]]
) -> None:
    counters = make.counters(COUNT)
    before = time.time_ns()
    (record,) = profile(stream, lambda: counters.add(stream, 1))
    clocks = api.relate_clocks(0)
    after = time.time_ns()
    start, end = (clocks.host_ns + at - clocks.device_ns for at in (record.start_ns, record.end_ns))
    assert before - MILLISECOND <= start <= end <= after + MILLISECOND
    assert before <= clocks.host_ns <= after
