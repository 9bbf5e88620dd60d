"""A lost device: it stays lost, its objects can be destroyed, and other devices work."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from making import Make
from runtime.work import fail, fill, wait_for_failure


def lose(api: ModuleType, faults: ModuleType, stream: Any, buffer: Any) -> None:
    fail(api, faults, stream, buffer, code="device_lost")
    failed = wait_for_failure(api, stream)
    assert failed.code is api.ErrorCode.DEVICE_LOST


def test_a_lost_device_stays_lost(
    api: ModuleType, faults: ModuleType, make: Make, buffer: Any
) -> None:
    stream, other, event = make.stream(), make.stream(), make.event()
    api.record(event, other)
    lose(api, faults, stream, buffer)
    for _ in range(2):
        for every in (stream, other, event, 0):
            failed = wait_for_failure(api, every)
            assert failed.code is api.ErrorCode.DEVICE_LOST
            assert (failed.device, failed.stream) == (0, stream)
        for progress in (*map(api.query_stream, (stream, other)), api.query_event(event)):
            assert progress is api.Progress.FAILED


CALLS: dict[str, Callable[[ModuleType, Any, Any, Any], object]] = {
    "allocate": lambda api, stream, event, buffer: api.allocate(0, 64),
    "memory_info": lambda api, stream, event, buffer: api.memory_info(0),
    "create_stream": lambda api, stream, event, buffer: api.create_stream(0, 0),
    "create_event": lambda api, stream, event, buffer: api.create_event(0, False),
    "record": lambda api, stream, event, buffer: api.record(event, stream),
    "wait": lambda api, stream, event, buffer: api.wait(stream, event),
    "fill_bytes": lambda api, stream, event, buffer: fill(api, stream, buffer),
    "copy_bytes": lambda api, stream, event, buffer: api.copy_bytes(
        stream, (buffer.address, 0), (buffer.address + 32, 0), 32
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_for_a_lost_device_throws(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any, call: str
) -> None:
    event = make.event()
    lose(api, faults, stream, buffer)
    for _ in range(2):
        with pytest.raises(api.DeviceError) as caught:
            CALLS[call](api, stream, event, buffer)
        assert caught.value.code is api.ErrorCode.DEVICE_LOST


def test_a_call_that_fails_with_device_lost_fails_the_device(
    api: ModuleType, faults: ModuleType, stream: Any
) -> None:
    faults.inject("allocate", code="device_lost")
    with pytest.raises(api.DeviceError):
        api.allocate(0, 64)
    assert api.query_stream(stream) is api.Progress.FAILED


def test_a_lost_device_can_be_queried_and_frees_memory(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    address, buffer = api.allocate(0, 4096), make.buffer(64)
    stream, event = api.create_stream(0, 0), api.create_event(0, False)
    lose(api, faults, stream, buffer)
    assert api.properties(0).total_memory > 0
    assert api.describe(0, address).base == address
    api.deallocate(0, address)
    api.destroy_event(event)
    api.destroy_stream(stream)
    assert api.describe(0, address).kind is api.MemoryKind.UNKNOWN


def test_another_device_works_when_one_is_lost(
    api: ModuleType, faults: ModuleType, second_device: int, make: Make, stream: Any, buffer: Any
) -> None:
    far, there, event = make.stream(second_device), make.buffer(64, second_device), make.event()
    api.record(event, stream)
    lose(api, faults, stream, buffer)
    fill(api, far, there, 7)
    api.synchronize(far)
    assert set(there.read()) == {7}
    # Work of the lost device for which the other device waits has failed.
    api.wait(far, event)
    failed = wait_for_failure(api, far)
    assert (failed.code, failed.device) == (api.ErrorCode.DEVICE_LOST, 0)
    api.acknowledge_stream(far)
    fill(api, far, there, 8)
    api.synchronize(second_device)
    assert set(there.read()) == {8}


def test_a_lost_device_is_lost_until_it_is_reset(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    lose(api, faults, stream, buffer)
    api.acknowledge_stream(stream)
    api.acknowledge_device(0)
    wait_for_failure(api, stream)
    api.reset_device(0)
    api.synchronize(0)
    fill(api, stream, buffer, 5)
    api.synchronize(stream)
    assert set(buffer.read()) == {5}


@pytest.mark.parametrize("call", ["allocate", "launch"])
def test_a_failure_on_another_device_names_the_lost_device(
    api: ModuleType,
    faults: ModuleType,
    second_device: int,
    make: Make,
    stream: Any,
    buffer: Any,
    call: str,
) -> None:
    far, event = make.stream(second_device), make.event()
    api.record(event, stream)
    faults.inject(call, code="device_lost")
    with pytest.raises(api.DeviceError):
        fill(api, stream, buffer) if call == "launch" else api.allocate(0, 64)
    api.wait(far, event)
    failed = wait_for_failure(api, far)
    assert (failed.code, failed.device) == (api.ErrorCode.DEVICE_LOST, 0)
    api.acknowledge_stream(far)
    api.synchronize(far)
    api.deallocate_host(api.allocate_host(64))
