"""Events of one process for which another process waits."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from device_library import needs, needs_property
from groups.other_process import Other, refused
from groups.shared_numbers import COUNT, SIZE, add, read
from making import Make
from runtime.work import wait_for_failure

GROUP = "sharing"


@pytest.fixture
def streams_watched(api: ModuleType, restored_layers: None) -> None:
    """Sets only the layer `streams`, before the test makes streams."""
    api.set_layers(["streams"])


@pytest.fixture
def shared(api: ModuleType, other: Other, numbers: int, make: Make) -> tuple[Any, int]:
    """An event and an address of numbers, opened in the other process as `event` and `address`."""
    event = make.event()
    handle = api.export_event(event)
    assert api.export_event(event) == handle
    other.run("event = api.open_event(0, handle)", handle=handle)
    other.run("address = api.open_memory(0, memory)", memory=api.export_memory(0, numbers))
    other.run("stream = api.create_stream(0, 0)")
    return event, numbers


def test_an_event_orders_work_of_two_processes(
    api: ModuleType, other: Other, shared: tuple[Any, int], stream: Any, gate: Any
) -> None:
    event, numbers = shared
    gate.hold(stream)
    add(api, stream, numbers, 1)
    api.record(event, stream)
    other.run("api.wait(stream, event); add(stream, address, 0)")
    assert other.ask("(api.is_complete(event), api.is_idle(stream))") == [False, False]
    gate.open()
    other.run("api.synchronize(stream)")
    assert other.ask("read(address)") == (COUNT + 1).tolist()
    assert other.ask("api.query_event(event).name") == "DONE"


def test_a_long_kernel_before_an_event_is_waited_for(
    api: ModuleType, other: Other, make_numbers: Callable[..., int], make: Make, stream: Any
) -> None:
    size = 16 << 20
    address, event = make_numbers(size=size), make.event()
    other.run(
        "address = api.open_memory(0, memory); event = api.open_event(0, handle);"
        "stream = api.create_stream(0, 0)",
        memory=api.export_memory(0, address),
        handle=api.export_event(event),
    )
    for round in range(1, 6):
        for _ in range(3):
            add(api, stream, address, 1, size // 4)
        api.record(event, stream)
        other.run(f"api.wait(stream, event); add(stream, address, 10, {size // 4})")
        other.run("api.synchronize(stream)")
        expected = np.arange(size // 4, dtype=np.int32) + 13 * round
        assert (read(api, address, size // 4) == expected).all()


def test_an_event_represents_its_latest_record(
    api: ModuleType, other: Other, shared: tuple[Any, int], make: Make
) -> None:
    event, _ = shared
    first, second, gate, later = make.stream(), make.stream(), make.gate(), make.gate()
    assert other.ask("api.query_event(event).name") == "DONE"  # never recorded
    other.run("api.synchronize(event)")
    gate.hold(first)
    api.record(event, first)
    other.run("api.wait(stream, event)")
    later.hold(second)
    api.record(event, second)
    other.run("late = api.create_stream(0, 0); api.wait(late, event)")
    gate.open()
    other.run("api.synchronize(stream)")
    assert other.ask("(api.is_idle(late), api.is_complete(event))") == [False, False]
    later.open()
    other.run("api.synchronize(late); api.synchronize(event)")


def test_a_wait_is_for_the_record_at_its_call(
    api: ModuleType, other: Other, shared: tuple[Any, int], make: Make, gate: Any
) -> None:
    event, _ = shared
    first, second = make.stream(), make.stream()
    gate.hold(first)
    api.record(event, first)
    other.run("api.wait(stream, event)")
    api.record(event, second)
    api.synchronize(second)
    assert not other.ask("api.is_idle(stream)")
    gate.open()
    other.run("api.synchronize(stream)")


def test_an_event_is_exported_while_it_is_pending(
    api: ModuleType, other: Other, make: Make, stream: Any
) -> None:
    gate, behind, event = make.gate(), make.gate(), make.event(timing=True)
    gate.hold(stream)
    api.record(event, stream)
    behind.hold(stream)
    other.run("event = api.open_event(0, handle)", handle=api.export_event(event))
    assert not other.ask("api.is_complete(event)")
    gate.open()
    other.run("api.synchronize(event)")
    assert not api.is_idle(stream)


def test_an_opened_event_has_no_time(
    api: ModuleType, bare_device: None, start_other: Callable[..., Other]
) -> None:
    owner = start_other()
    owner.run("event = api.create_event(0, True); api.record(event, api.default_stream(0))")
    event = api.open_event(0, owner.ask("api.export_event(event)"))
    with refused(api, "must be created with timing"):
        api.elapsed_ms(event, event)
    api.destroy_event(event)


def test_an_event_may_be_destroyed_while_others_wait(
    api: ModuleType, other: Other, stream: Any, gate: Any
) -> None:
    event = api.create_event(0, False)
    other.run(
        "event = api.open_event(0, handle); stream = api.create_stream(0, 0)",
        handle=api.export_event(event),
    )
    gate.hold(stream)
    api.record(event, stream)
    other.run("api.wait(stream, event)")
    api.destroy_event(event)
    assert not other.ask("api.is_idle(stream)")
    other.run("api.destroy_event(event)")
    gate.open()
    other.run("api.synchronize(stream)")


def test_a_failure_before_the_event_is_inherited_by_waiting_processes(
    api: ModuleType, shared: tuple[Any, int], other: Other, stream: Any
) -> None:
    needs_property("reports_errors")
    event, numbers = shared
    view = api.View(numbers, api.DType.int32, 1000)
    divide = api.BinaryOp.div_trunc
    if (reason := api.binary(stream, divide, view, view, 0, api.BinaryParams())) is not None:
        pytest.skip(f"the device does not support division of integers: {reason}")
    api.record(event, stream)
    other.run("api.wait(stream, event)")
    with refused(api, r"work of process \d+ failed before its shared event"):
        other.run("api.synchronize(stream)")
    other.run("api.acknowledge_stream(stream); api.synchronize(stream)")
    wait_for_failure(api, stream)
    api.acknowledge_stream(stream)
    api.record(event, stream)
    other.run("api.synchronize(event)")


def test_the_end_of_the_exporter_with_work_pending_fails_and_does_not_hang(
    api: ModuleType, start_other: Callable[..., Other], stream: Any
) -> None:
    owner = start_other()
    owner.run(
        "import threading\n"
        "event, done = api.create_event(0, False), api.create_event(0, False)\n"
        "stream = api.create_stream(0, 0)\n"
        "api.record(done, stream)\n"
        "api.launch_host(stream, threading.Event().wait)\n"
        "api.record(event, stream)"
    )
    event, done = (
        api.open_event(0, owner.ask(f"api.export_event({e})")) for e in ("event", "done")
    )
    api.wait(stream, event)
    assert api.query_event(event) is api.Progress.PENDING
    assert not api.is_idle(stream)
    owner.kill()
    sentence = r"process \d+ ended before the work of its shared event"
    for waited in (stream, event):
        with refused(api, sentence, "INTERNAL"):
            api.synchronize(waited)
    api.synchronize(done)
    assert api.query_event(done) is api.Progress.DONE
    for opened in (event, done):
        api.destroy_event(opened)
    buffer = api.Buffer(0, 64)
    buffer.write(bytes(64))


def test_an_exported_event_is_not_recorded_in_a_capture(
    api: ModuleType, stream: Any, make: Make
) -> None:
    needs("begin_capture")
    event = make.event()
    api.export_event(event)
    api.begin_capture(stream)
    with refused(api, "an event that is shared with other processes"):
        api.record(event, stream)
    with pytest.raises(api.DeviceError):
        api.end_capture(stream)


def test_many_events_can_be_exported(api: ModuleType, other: Other, make: Make) -> None:
    stream = make.stream()
    for _ in range(20):
        events = [api.create_event(0, False) for _ in range(100)]
        handles = [api.export_event(event) for event in events]
        for event in events:
            api.record(event, stream)
        other.run(
            "events = [api.open_event(0, handle) for handle in handles]\n"
            "for event in events:\n"
            "    api.synchronize(event)\n"
            "    api.destroy_event(event)",
            handles=handles,
        )
        for event in events:
            api.destroy_event(event)


@pytest.mark.parametrize("tells", [True, False])
def test_the_layer_streams_accepts_order_by_another_process(
    api: ModuleType,
    start_other: Callable[..., Other],
    numbers: int,
    make: Make,
    streams_watched: None,
    tells: bool,
) -> None:
    first, second, event = make.stream(), make.stream(), make.event()
    other = start_other()
    other.run(
        "stream, answer = api.create_stream(0, 0), api.create_event(0, False)\n"
        "event = api.open_event(0, handle)",
        handle=api.export_event(event),
    )
    answer = api.open_event(0, other.ask("api.export_event(answer)"))
    api.fill_bytes(first, numbers, 1, SIZE)
    if tells:
        api.record(event, first)
    other.run("api.wait(stream, event); api.record(answer, stream)")
    api.wait(second, answer)
    if tells:
        api.fill_bytes(second, numbers, 2, SIZE)
    else:
        with pytest.raises(api.DeviceError, match="nothing orders the two"):
            api.fill_bytes(second, numbers, 2, SIZE)
    api.synchronize(0)
    api.destroy_event(answer)
