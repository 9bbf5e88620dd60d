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
        api.copy_bytes(stream, target.address, 0, source.address, 0, 64)
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


def test_is_idle_reports_an_error(
    api: ModuleType,
    fail_next: Callable[..., None],
    make_event: Callable[..., Any],
    stream: Any,
    buffer: Any,
) -> None:
    event = make_event()
    fail_next("LAUNCH", later=True)
    fill(api, stream, buffer)
    api.wait(api.default_stream(0), event)
    with pytest.raises(api.DeviceError):
        while not api.is_idle(stream):
            pass
        raise AssertionError("the stream became idle without an error")
    assert api.is_idle(stream)


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
    stream, buffer = api.create_stream(0), make_buffer(64)
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
    stream, buffer = api.create_stream(0), make_buffer(64)
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
