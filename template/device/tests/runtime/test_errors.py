"""Failures: what is thrown at once, what surfaces later, and how long it stays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from making import Make
from runtime.work import fill


def test_a_failed_allocation_is_thrown_at_once(api: ModuleType, faults: ModuleType) -> None:
    before = api.memory_info(0).free
    faults.inject("allocate", code="out_of_memory")
    with pytest.raises(MemoryError, match="injected"):
        api.allocate(0, 64)
    assert api.memory_info(0).free == before
    api.deallocate(0, api.allocate(0, 64))


def test_a_failed_host_allocation_is_thrown_at_once(api: ModuleType, faults: ModuleType) -> None:
    faults.inject("allocate_host", code="out_of_memory")
    with pytest.raises(MemoryError, match="injected"):
        api.allocate_host(64)
    api.deallocate_host(api.allocate_host(64))


def test_the_nth_call_fails_and_no_other(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    faults.inject("launch", nth=3)
    fill(api, stream, buffer)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError) as caught:
        fill(api, stream, buffer)
    assert caught.value.code is api.ErrorCode.INTERNAL
    fill(api, stream, buffer)
    api.synchronize(stream)


def test_a_failed_launch_leaves_the_data_alone(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    fill(api, stream, buffer, 1)
    faults.inject("launch", later=True)
    fill(api, stream, buffer, 2)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    api.acknowledge_stream(stream)
    assert set(buffer.read()) == {1}


@pytest.mark.parametrize("later", [False, True])
def test_a_failed_copy_is_reported(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, later: bool
) -> None:
    source, target = make.buffer(64), make.buffer(64)
    faults.inject("copy", later=later)
    with pytest.raises(api.DeviceError, match="injected failure of this copy"):
        api.copy_bytes(stream, (target.address, 0), (source.address, 0), 64)
        assert later
        api.synchronize(stream)


def test_the_first_of_two_errors_is_the_one_reported(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    faults.inject("launch", code="unsupported", later=True)
    fill(api, stream, buffer)
    faults.inject("launch", code="internal", later=True)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(stream)
    assert caught.value.code is api.ErrorCode.UNSUPPORTED
    api.acknowledge_stream(stream)
    api.synchronize(stream)


def test_asking_neither_throws_nor_forgets(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event = make.event()
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    while not (api.is_idle(stream) and api.is_complete(event)):
        pass
    assert api.query_stream(stream) is api.query_event(event) is api.Progress.FAILED
    with pytest.raises(api.DeviceError):
        api.synchronize(event)


def test_an_error_names_where_it_comes_from(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event, waiting = make.event(), make.stream()
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    api.wait(waiting, event)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(waiting)
    assert caught.value.stream == stream
    assert caught.value.device == 0
    assert caught.value.operation == "fill_bytes"


@pytest.mark.parametrize("early", [False, True], ids=["before it ran", "after it ran"])
def test_a_stream_that_waits_for_an_event_inherits_its_error(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any, early: bool
) -> None:
    event, waiting = make.event(), make.stream()
    if not early:
        faults.set_delay(20_000, 20_000)
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    while early and not api.is_complete(event):
        pass
    api.wait(waiting, event)
    with pytest.raises(api.DeviceError, match="injected failure"):
        api.synchronize(waiting)
    for every in (waiting, stream):
        api.acknowledge_stream(every)
    for every in (waiting, stream, event, 0):
        api.synchronize(every)


def test_an_error_travels_over_streams_and_devices_to_an_event(
    api: ModuleType, faults: ModuleType, second_device: int, make: Make, stream: Any, buffer: Any
) -> None:
    far, near = make.stream(second_device), make.stream(0)
    first, second, third = make.event(0), make.event(second_device), make.event(0)
    faults.inject("launch", later=True)
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
        with pytest.raises(api.DeviceError):
            api.synchronize(device)
        api.acknowledge_device(device)
        api.synchronize(device)


def test_an_error_that_was_acknowledged_is_not_inherited(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event, waiting = make.event(), make.stream()
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    api.acknowledge_stream(stream)
    api.wait(waiting, event)
    api.synchronize(waiting)
    api.synchronize(0)


def test_what_was_recorded_before_a_wait_does_not_inherit(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any
) -> None:
    failed, before, waiting = make.event(), make.event(), make.stream()
    faults.inject("launch", later=True)
    fill(api, stream, make.buffer(64))
    api.record(failed, stream)
    fill(api, waiting, make.buffer(64))
    api.record(before, waiting)
    api.wait(waiting, failed)
    api.synchronize(before)
    with pytest.raises(api.DeviceError):
        api.synchronize(waiting)


def test_an_error_explains_those_behind_it_on_its_stream(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event = make.event()
    faults.inject("launch", code="unsupported", later=True)
    fill(api, stream, buffer)
    api.record(event, stream)
    faults.inject("launch", code="internal", later=True)
    fill(api, stream, buffer)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(event)
    assert caught.value.code is api.ErrorCode.UNSUPPORTED
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(stream)
    assert caught.value.code is api.ErrorCode.UNSUPPORTED
    api.acknowledge_stream(stream)
    api.synchronize(stream)


def test_the_errors_of_two_streams_are_both_thrown_by_their_device(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    streams = [make.stream(), make.stream()]
    for stream in streams:
        faults.inject("launch", later=True)
        fill(api, stream, make.buffer(64))
    thrown = []
    for _ in streams:
        with pytest.raises(api.DeviceError) as caught:
            api.synchronize(0)
        thrown.append(caught.value.stream)
        api.acknowledge_stream(caught.value.stream)
    assert set(thrown) == set(streams)
    api.synchronize(0)


def test_a_launch_that_fails_names_its_operation(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    view = buffer.view(0, api.DType.float32, [16], [1])
    if api.fill(stream, view, 1) is not None:
        pytest.skip("the device has no kernel that fills")
    faults.inject("launch", later=True)
    api.fill(stream, view, 2)
    with pytest.raises(api.DeviceError) as caught:
        api.synchronize(stream)
    assert caught.value.operation == "the operation under test"


def test_an_event_reports_only_errors_before_it(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    before, after = make.event(), make.event()
    fill(api, stream, buffer)
    api.record(before, stream)
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.record(after, stream)
    api.synchronize(before)
    assert api.is_complete(before)
    with pytest.raises(api.DeviceError):
        api.synchronize(after)
    assert api.is_complete(after)


def test_a_device_reports_the_errors_of_its_streams_and_no_others(
    api: ModuleType, faults: ModuleType, second_device: int, make: Make
) -> None:
    stream, buffer = make.stream(second_device), make.buffer(64, second_device)
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.synchronize(0)
    with pytest.raises(api.DeviceError):
        api.synchronize(second_device)
    api.acknowledge_device(0)
    with pytest.raises(api.DeviceError):
        api.synchronize(second_device)
    api.acknowledge_device(second_device)
    api.synchronize(second_device)
    api.synchronize(stream)


def test_a_destroyed_stream_leaves_its_error_to_the_device(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    stream, buffer = api.create_stream(0, 0), make.buffer(64)
    faults.inject("launch", later=True)
    fill(api, stream, buffer)
    api.destroy_stream(stream)
    for _ in range(2):
        with pytest.raises(api.DeviceError):
            api.synchronize(0)
    api.acknowledge_device(0)
    api.synchronize(0)


def test_a_failure_does_not_stop_later_work(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    faults.inject("launch", later=True)
    fill(api, stream, buffer, 1)
    fill(api, stream, buffer, 2)
    with pytest.raises(api.DeviceError):
        api.synchronize(stream)
    api.acknowledge_stream(stream)
    assert set(buffer.read()) == {2}
