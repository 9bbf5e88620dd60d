"""Events: the work that a recording covers, waits for it, and times."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs_property
from making import Make


@pytest.fixture
def event(make: Make, timing: bool) -> Any:
    return make.event(timing=timing)


def test_an_event_that_was_never_recorded_is_complete(
    api: ModuleType, stream: Any, event: Any
) -> None:
    assert api.is_complete(event)
    api.synchronize(event)
    api.wait(stream, event)
    api.synchronize(stream)


def test_an_event_does_not_cover_work_after_it(
    api: ModuleType, stream: Any, any_gate: Any, event: Any, make: Make
) -> None:
    api.fill_bytes(stream, make.buffer(64).address, 1, 64)
    api.record(event, stream)
    any_gate.hold(stream)
    api.synchronize(event)
    assert api.is_complete(event)
    assert not api.is_idle(stream)


@pytest.fixture(params=[0, 1], ids=["one device", "two devices"])
def waiting(request: pytest.FixtureRequest) -> int:
    """The device of a stream that waits for an event of device 0."""
    return int(request.getfixturevalue("second_device")) if request.param else 0


def test_a_stream_waits_for_the_work_before_an_event(
    api: ModuleType, gate: Any, event: Any, make: Make, waiting: int
) -> None:
    first, second = make.stream(), make.stream(waiting)
    ran: list[str] = []
    gate.hold(first)
    api.launch_host(first, lambda: ran.append("first"))
    api.record(event, first)
    api.wait(second, event)
    api.launch_host(second, lambda: ran.append("second"))
    assert not api.is_idle(second)
    gate.open()
    api.synchronize(second)
    assert ran == ["first", "second"]


def test_a_stream_waits_for_long_work_before_an_event(
    api: ModuleType, event: Any, make: Make, waiting: int
) -> None:
    """The same without host functions: the second stream copies the result of the work."""
    size = 2**22
    first, second = make.stream(), make.stream(waiting)
    source, target = make.buffer(size), make.buffer(64, waiting)
    for value in range(200):
        api.fill_bytes(first, source.address, value, size)
    api.record(event, first)
    api.wait(second, event)
    api.copy_bytes(second, (target.address, waiting), (source.address, 0), 64)
    api.synchronize(second)
    assert set(target.read()) == {199}
    assert api.is_complete(event)
    api.synchronize(first)


def test_synchronising_an_event_waits_for_long_work_before_it(
    api: ModuleType, stream: Any, event: Any, make: Make
) -> None:
    size = 2**22
    buffer, address = make.buffer(size), make.pinned(64)
    for value in range(200):
        api.fill_bytes(stream, buffer.address, value, size)
    api.copy_bytes(stream, (address, api.HOST), (buffer.address, 0), 64)
    api.record(event, stream)
    api.synchronize(event)
    assert ctypes.string_at(address, 64) == bytes([199]) * 64


def test_wait_uses_the_record_at_the_time_of_the_call(
    api: ModuleType, make: Make, event: Any, streams: tuple[Any, Any]
) -> None:
    source, waiter = streams
    early, late = make.gate(), make.gate()
    early.hold(source)
    api.record(event, source)
    api.wait(waiter, event)
    late.hold(source)
    api.record(event, source)
    early.open()
    api.synchronize(waiter)  # would never return if the wait covered the second record
    assert not api.is_complete(event)


def test_wait_before_the_first_record_waits_for_nothing(
    api: ModuleType, gate: Any, event: Any, streams: tuple[Any, Any]
) -> None:
    source, waiter = streams
    api.wait(waiter, event)
    gate.hold(source)
    api.record(event, source)
    api.synchronize(waiter)


def test_rerecorded_event_reports_the_newer_work(
    api: ModuleType, stream: Any, any_gate: Any, event: Any
) -> None:
    api.record(event, stream)
    api.synchronize(event)
    any_gate.hold(stream)
    api.record(event, stream)
    assert not api.is_complete(event)
    any_gate.open()
    api.synchronize(event)
    assert api.is_complete(event)


def test_an_event_can_move_to_another_stream(
    api: ModuleType, gate: Any, event: Any, streams: tuple[Any, Any]
) -> None:
    held, free = streams
    gate.hold(held)
    api.record(event, held)
    api.record(event, free)
    api.synchronize(event)
    assert api.is_complete(event)
    assert not api.is_idle(held)


def test_a_stream_does_not_wait_for_itself(
    api: ModuleType, stream: Any, any_gate: Any, event: Any
) -> None:
    any_gate.hold(stream)
    api.record(event, stream)
    api.wait(stream, event)
    any_gate.open()
    api.synchronize(stream)


def test_an_event_may_be_destroyed_while_others_wait_for_it(
    api: ModuleType, gate: Any, timing: bool, streams: tuple[Any, Any]
) -> None:
    source, waiter = streams
    ran: list[str] = []
    gate.hold(source)
    api.launch_host(source, lambda: ran.append("source"))
    event = api.create_event(0, timing)
    api.record(event, source)
    api.wait(waiter, event)
    api.launch_host(waiter, lambda: ran.append("waiter"))
    api.destroy_event(event)
    gate.open()
    api.synchronize(waiter)
    assert ran == ["source", "waiter"]


def test_streams_can_wait_for_each_other_many_times(
    api: ModuleType, streams: tuple[Any, Any], any_gate: Any, make: Make
) -> None:
    first, second = streams
    buffer = make.buffer(64)
    any_gate.hold(first)
    enqueued = threading.Event()

    def open_in_time() -> None:
        enqueued.wait(2)  # a device with room for less work waits for the gate
        any_gate.open()

    opening = threading.Thread(target=open_in_time)
    opening.start()
    for value in range(500):
        for stream, other in ((first, second), (second, first)):
            event = make.event()
            api.fill_bytes(stream, buffer.address, value % 256, 64)
            api.record(event, stream)
            api.wait(other, event)
    enqueued.set()
    opening.join()
    # A chain of waits must not become a recursion, so this thread has a small stack.
    size = threading.stack_size(256 << 10)
    try:
        waiting = threading.Thread(target=api.synchronize, args=(first,))
        waiting.start()
    finally:
        threading.stack_size(size)
    waiting.join()
    assert buffer.read() == bytes([499 % 256] * 64)


def test_an_event_outlives_the_stream_it_was_recorded_on(
    api: ModuleType, make: Make, stream: Any, event: Any
) -> None:
    short_lived, buffer = api.create_stream(0, 0), make.buffer(64)
    api.fill_bytes(short_lived, buffer.address, 1, 64)
    api.record(event, short_lived)
    api.destroy_stream(short_lived)
    assert api.is_complete(event)
    api.synchronize(event)
    api.wait(stream, event)
    api.synchronize(stream)


def test_elapsed_time_is_positive_and_adds_up(api: ModuleType, make: Make, stream: Any) -> None:
    needs_property("event_timing")
    buffer = make.buffer(1 << 20)
    events = [make.event(timing=True) for _ in range(3)]
    for event in events:
        for value in range(8):
            api.fill_bytes(stream, buffer.address, value, 1 << 20)
        api.record(event, stream)
    api.synchronize(stream)
    first, second = api.elapsed_ms(*events[:2]), api.elapsed_ms(*events[1:])
    assert first > 0
    assert second > 0
    assert api.elapsed_ms(events[0], events[2]) == pytest.approx(first + second)
    assert api.elapsed_ms(events[1], events[0]) == pytest.approx(-first)


def test_elapsed_time_needs_timed_and_complete_events(
    api: ModuleType,
    refuses: Callable[..., None],
    make: Make,
    stream: Any,
    any_gate: Any,
    timing: bool,
) -> None:
    needs_property("event_timing")
    done, other = make.event(timing=True), make.event(timing=timing)
    api.record(done, stream)
    api.synchronize(done)
    refuses(api.elapsed_ms, done, other)  # never recorded
    any_gate.hold(stream)
    api.record(other, stream)
    with pytest.raises(api.DeviceError):
        api.elapsed_ms(done, other)  # pending
    any_gate.open()
    api.synchronize(other)
    if timing:
        assert api.elapsed_ms(done, other) >= 0
    else:
        with pytest.raises(api.DeviceError):
            api.elapsed_ms(done, other)
