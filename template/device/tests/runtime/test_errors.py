"""Failures: those that calls throw, those that are reported later, and until when."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from making import Make
from runtime.work import fail, fill, wait_for_failure


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


def test_only_the_nth_call_fails(
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


def test_a_failed_launch_does_not_change_the_data(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    fill(api, stream, buffer, 1)
    fail(api, faults, stream, buffer, 2)
    wait_for_failure(api, stream)
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


def test_queries_neither_throw_nor_clear_an_error(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event = make.event()
    fail(api, faults, stream, buffer)
    api.record(event, stream)
    while not (api.is_idle(stream) and api.is_complete(event)):
        pass
    assert api.query_stream(stream) is api.query_event(event) is api.Progress.FAILED
    wait_for_failure(api, event)


def test_an_error_names_where_it_comes_from(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event, waiting = make.event(), make.stream()
    fail(api, faults, stream, buffer)
    api.record(event, stream)
    api.wait(waiting, event)
    failed = wait_for_failure(api, waiting)
    assert failed.stream == stream
    assert failed.device == 0
    assert failed.operation == "fill_bytes"


@pytest.mark.parametrize("early", [False, True], ids=["before it ran", "after it ran"])
def test_a_stream_that_waits_for_an_event_inherits_its_error(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any, early: bool
) -> None:
    event, waiting = make.event(), make.stream()
    if not early:
        faults.set_delay(20_000, 20_000)
    fail(api, faults, stream, buffer)
    api.record(event, stream)
    while early and not api.is_complete(event):
        pass
    api.wait(waiting, event)
    wait_for_failure(api, waiting, "injected failure")
    for every in (waiting, stream):
        api.acknowledge_stream(every)
    for every in (waiting, stream, event, 0):
        api.synchronize(every)


def test_an_error_is_passed_on_over_streams_and_devices(
    api: ModuleType, faults: ModuleType, second_device: int, make: Make, stream: Any, buffer: Any
) -> None:
    far, near = make.stream(second_device), make.stream(0)
    first, second, third = make.event(0), make.event(second_device), make.event(0)
    fail(api, faults, stream, buffer)
    api.record(first, stream)
    api.wait(far, first)
    api.record(second, far)
    api.wait(near, second)
    api.record(third, near)
    failed = wait_for_failure(api, third)
    assert (failed.stream, failed.device) == (stream, 0)
    for device in (0, second_device):
        wait_for_failure(api, device)
        api.acknowledge_device(device)
        api.synchronize(device)


def test_an_error_that_was_acknowledged_is_not_inherited(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event, waiting = make.event(), make.stream()
    fail(api, faults, stream, buffer)
    api.record(event, stream)
    wait_for_failure(api, stream)
    api.acknowledge_stream(stream)
    api.wait(waiting, event)
    api.synchronize(waiting)
    api.synchronize(0)


def test_an_event_recorded_before_a_wait_does_not_inherit(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any
) -> None:
    failed, before, waiting = make.event(), make.event(), make.stream()
    fail(api, faults, stream, make.buffer(64))
    api.record(failed, stream)
    fill(api, waiting, make.buffer(64))
    api.record(before, waiting)
    api.wait(waiting, failed)
    api.synchronize(before)
    wait_for_failure(api, waiting)


def test_the_first_error_of_a_stream_is_reported(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event = make.event()
    fail(api, faults, stream, buffer, code="unsupported")
    api.record(event, stream)
    fail(api, faults, stream, buffer, code="internal")
    failed = wait_for_failure(api, event)
    assert failed.code is api.ErrorCode.UNSUPPORTED
    failed = wait_for_failure(api, stream)
    assert failed.code is api.ErrorCode.UNSUPPORTED
    api.acknowledge_stream(stream)
    api.synchronize(stream)


def test_the_errors_of_two_streams_are_both_thrown_by_their_device(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    streams = [make.stream(), make.stream()]
    for stream in streams:
        fail(api, faults, stream, make.buffer(64))
    thrown = []
    for _ in streams:
        failed = wait_for_failure(api, 0)
        thrown.append(failed.stream)
        api.acknowledge_stream(failed.stream)
    assert set(thrown) == set(streams)
    api.synchronize(0)


def test_a_launch_that_fails_names_its_operation(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    view = buffer.view(0, api.DType.float32, [16], [1])
    try:
        reason = api.fill(stream, view, 1)
    except api.DeviceError as error:
        # The kernels of device/shared/text, before compile() of text.cpp is written.
        if error.code is not api.ErrorCode.UNSUPPORTED:
            raise
        reason = str(error)
    if reason is not None:
        pytest.skip(f"the device has no kernel that fills: {reason}")
    faults.inject("launch", later=True)
    api.fill(stream, view, 2)
    assert wait_for_failure(api, stream).operation == "the operation under test"


def test_an_event_reports_only_errors_before_it(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    before, after = make.event(), make.event()
    fill(api, stream, buffer)
    api.record(before, stream)
    fail(api, faults, stream, buffer)
    api.record(after, stream)
    api.synchronize(before)
    assert api.is_complete(before)
    wait_for_failure(api, after)
    assert api.is_complete(after)


def test_a_device_reports_the_errors_of_its_streams_and_no_others(
    api: ModuleType, faults: ModuleType, second_device: int, make: Make
) -> None:
    stream, buffer = make.stream(second_device), make.buffer(64, second_device)
    fail(api, faults, stream, buffer)
    api.synchronize(0)
    wait_for_failure(api, second_device)
    api.acknowledge_device(0)
    wait_for_failure(api, second_device)
    api.acknowledge_device(second_device)
    api.synchronize(second_device)
    api.synchronize(stream)


def test_the_device_reports_the_error_of_a_destroyed_stream(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    stream, buffer = api.create_stream(0, 0), make.buffer(64)
    fail(api, faults, stream, buffer)
    api.destroy_stream(stream)
    for _ in range(2):
        wait_for_failure(api, 0)
    api.acknowledge_device(0)
    api.synchronize(0)


def test_a_failure_does_not_stop_later_work(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    fail(api, faults, stream, buffer, 1)
    fill(api, stream, buffer, 2)
    wait_for_failure(api, stream)
    api.acknowledge_stream(stream)
    assert set(buffer.read()) == {2}
