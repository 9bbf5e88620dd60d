"""Failures: what is thrown at once, what surfaces later, and how often."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def fail_next(api: ModuleType, simulator: ModuleType) -> Callable[..., None]:
    def inject(call: str, nth: int = 1, code: str = "INTERNAL", later: bool = False) -> None:
        simulator.inject(simulator.Call[call], nth, api.ErrorCode[code], asynchronous=later)

    return inject


@pytest.fixture
def buffer(make_buffer: Callable[..., Any]) -> Any:
    """64 bytes of device 0."""
    return make_buffer(64)


def fill(api: ModuleType, stream: Any, buffer: Any, value: int = 1) -> None:
    api.fill_bytes(stream, buffer.address, value, buffer.bytes)


def test_a_failed_allocation_is_thrown_at_once(
    api: ModuleType, fail_next: Callable[..., None]
) -> None:
    before = api.memory_info(0).free
    fail_next("ALLOCATE", code="OUT_OF_MEMORY")
    with pytest.raises(MemoryError, match="injected"):
        api.allocate(0, 64)
    assert api.memory_info(0).free == before
    api.deallocate(0, api.allocate(0, 64))


def test_a_failed_host_allocation_is_thrown_at_once(
    api: ModuleType, fail_next: Callable[..., None]
) -> None:
    fail_next("ALLOCATE_HOST", code="OUT_OF_MEMORY")
    with pytest.raises(MemoryError, match="injected"):
        api.allocate_host(64)
    api.deallocate_host(api.allocate_host(64))


def test_the_nth_call_fails_and_no_other(
    api: ModuleType, fail_next: Callable[..., None], stream: Any, buffer: Any
) -> None:
    fail_next("LAUNCH", nth=3)
    fill(api, stream, buffer)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError) as caught:
        fill(api, stream, buffer)
    assert caught.value.code is api.ErrorCode.INTERNAL
    fill(api, stream, buffer)
    api.synchronize(stream)


def test_a_failed_launch_leaves_the_data_alone(
    api: ModuleType, fail_next: Callable[..., None], stream: Any, buffer: Any
) -> None:
    fill(api, stream, buffer, 1)
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer, 2)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    assert set(buffer.read()) == {1}


@pytest.mark.parametrize("later", [False, True])
def test_a_failed_copy_is_reported(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_buffer: Callable[..., Any],
    stream: Any,
    later: bool,
) -> None:
    source, target = make_buffer(64), make_buffer(64)
    fail_next("COPY", later=later)
    with pytest.raises(api.DeviceError, match="injected failure of this copy"):
        api.copy_bytes(stream, (target.address, 0), (source.address, 0), 64)
        assert later
        api.synchronize(stream)


def test_error_surfaces_once_at_the_next_synchronise(
    api: ModuleType, fail_next: Callable[..., None], stream: Any, buffer: Any
) -> None:
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    api.synchronize(stream)
    assert api.is_idle(stream)


def test_the_first_of_two_errors_is_the_one_reported(
    api: ModuleType, fail_next: Callable[..., None], stream: Any, buffer: Any
) -> None:
    fail_next("LAUNCH", code="UNSUPPORTED", later=True)
    fill(api, stream, buffer)
    fail_next("LAUNCH", code="INTERNAL", later=True)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(stream)
    assert caught.value.code is api.ErrorCode.UNSUPPORTED
    api.synchronize(stream)


def test_asking_neither_throws_nor_forgets(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    event = make_event()
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    while not (api.is_idle(stream) and api.is_complete(event)):
        pass
    with pytest.raises(api.DeviceError):
        api.synchronize(event)
    api.synchronize(stream)


def test_an_error_names_where_it_comes_from(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    make_stream: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    event, waiting = make_event(), make_stream()
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    api.wait(waiting, event)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(waiting)
    assert caught.value.stream == stream
    assert caught.value.device == 0
    assert caught.value.operation == "fill_bytes"


def test_an_error_of_a_call_has_no_origin(api: ModuleType) -> None:
    with pytest.raises(api.DeviceError) as caught:
        api.properties(-1)
    assert caught.value.device == api.HOST
    assert caught.value.operation is None


@pytest.mark.parametrize("early", [False, True], ids=["before it ran", "after it ran"])
def test_a_stream_that_waits_for_an_event_inherits_its_error(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    make_stream: Callable[..., Any],
    stream: Any,
    gate: Any,
    buffer: Any,
    early: bool,
) -> None:
    event, waiting = make_event(), make_stream()
    if not early:
        gate.hold(stream)
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    while early and not api.is_complete(event):
        pass
    api.wait(waiting, event)
    gate.open()
    with pytest.raises(api.DeviceError, match="injected failure"):
        api.synchronize(waiting)
    for every in (waiting, stream, event, 0):
        api.synchronize(every)


def test_an_error_travels_over_streams_and_devices_to_an_event(
    api: ModuleType,
    fail_next: Callable[..., None],
    second_device: int,
    make_event: Callable[..., Any],
    make_stream: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    far, near = make_stream(second_device), make_stream(0)
    first, second, third = make_event(0), make_event(second_device), make_event(0)
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(first, stream)
    api.wait(far, first)
    api.record(second, far)
    api.wait(near, second)
    api.record(third, near)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(third)
    assert (caught.value.stream, caught.value.device) == (stream, 0)
    for device in (0, second_device):
        api.synchronize(device)


def test_an_error_that_was_thrown_is_not_inherited(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    make_stream: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    event, waiting = make_event(), make_stream()
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    api.wait(waiting, event)
    api.synchronize(waiting)
    api.synchronize(0)


def test_what_was_recorded_before_a_wait_does_not_inherit(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    make_stream: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    failed, before, waiting = make_event(), make_event(), make_stream()
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(failed, stream)
    fill(api, waiting, buffer)
    api.record(before, waiting)
    api.wait(waiting, failed)
    api.synchronize(before)
    with pytest.raises(api.DeviceError):
        api.synchronize(waiting)


def test_an_error_behind_an_event_is_not_lost_to_one_before_it(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    event = make_event()
    fail_next("LAUNCH", code="UNSUPPORTED", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    fail_next("LAUNCH", code="INTERNAL", later=True)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(event)
    assert caught.value.code is api.ErrorCode.UNSUPPORTED
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(stream)
    assert caught.value.code is api.ErrorCode.INTERNAL


def test_the_errors_of_two_streams_are_both_thrown_by_their_device(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_stream: Callable[..., Any],
    buffer: Any,
) -> None:
    streams = [make_stream(), make_stream()]
    for stream in streams:
        fail_next("LAUNCH", later=True)
        fill(api, stream, buffer)
    thrown = []
    for _ in streams:
        with pytest.raises(api.DeviceError) as caught:
            api.synchronize(0)
        thrown.append(caught.value.stream)
    assert set(thrown) == set(streams)
    api.synchronize(0)


def test_a_launch_that_fails_names_its_operation(
    api: ModuleType, fail_next: Callable[..., None], stream: Any, buffer: Any
) -> None:
    view = buffer.view(0, api.DType.uint8, [64], [1])
    if api.fill(stream, view, 1) is not None:
        pytest.skip("the device has no kernel that fills")
    fail_next("LAUNCH", later=True)
    api.fill(stream, view, 2)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(stream)
    assert caught.value.operation == "the operation under test"


def test_an_event_reports_only_errors_before_it(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    stream: Any,
    gate: Any,
    buffer: Any,
) -> None:
    before, after = make_event(), make_event()
    gate.hold(stream)
    api.record(before, stream)
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.record(after, stream)
    gate.open()
    api.synchronize(before)
    assert api.is_complete(before)
    with pytest.raises(api.DeviceError):
        api.synchronize(after)
    assert api.is_complete(after)
    api.synchronize(stream)


def test_a_device_reports_the_errors_of_its_streams_and_no_others(
    api: ModuleType,
    fail_next: Callable[..., None],
    second_device: int,
    make_stream: Callable[..., Any],
    make_buffer: Callable[..., Any],
) -> None:
    stream, buffer = make_stream(second_device), make_buffer(64, second_device)
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.synchronize(0)
    with pytest.raises(api.DeviceError):
        api.synchronize(second_device)
    api.synchronize(second_device)
    api.synchronize(stream)


def test_a_destroyed_stream_leaves_its_error_to_the_device(
    api: ModuleType, fail_next: Callable[..., None], make_buffer: Callable[..., Any]
) -> None:
    stream, buffer = api.create_stream(0, 0), make_buffer(64)
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.destroy_stream(stream)
    with pytest.raises(api.DeviceError):
        api.synchronize(0)
    api.synchronize(0)


def test_a_failure_does_not_stop_later_work(
    api: ModuleType, fail_next: Callable[..., None], stream: Any, buffer: Any
) -> None:
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer, 1)
    fill(api, stream, buffer, 2)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    assert set(buffer.read()) == {2}


def test_a_lost_device_stays_lost(
    api: ModuleType, fail_next: Callable[..., None], make_buffer: Callable[..., Any]
) -> None:
    stream, buffer = api.create_stream(0, 0), make_buffer(64)
    fail_next("LAUNCH", code="DEVICE_LOST", later=True)
    fill(api, stream, buffer)
    for _ in range(2):
        with pytest.raises(api.DeviceError) as caught:
            api.synchronize(stream)
        assert caught.value.code is api.ErrorCode.DEVICE_LOST
    api.destroy_stream(stream)
    with pytest.raises(api.DeviceError):
        api.synchronize(0)


def test_a_message_begins_with_the_errors_own_name_and_number(
    api: ModuleType, simulator: ModuleType
) -> None:
    with pytest.raises(api.DeviceError, match=r"^SIM_INVALID_ARGUMENT \(0\): "):
        api.properties(-1)


def test_a_fault_that_makes_no_sense_is_refused(
    api: ModuleType, fail_next: Callable[..., None]
) -> None:
    with pytest.raises(api.DeviceError):
        fail_next("ALLOCATE", later=True)
    with pytest.raises(api.DeviceError):
        fail_next("LAUNCH", nth=0)
