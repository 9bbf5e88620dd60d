"""Failures of events, failures that are found late, late completion, and combinations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from device_library import needs_property
from making import Make
from runtime.work import fail, fill, wait_for_failure


@pytest.mark.parametrize("call", ["create_event", "record"])
def test_a_failed_event_is_thrown_at_once(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any, call: str
) -> None:
    event = make.event()
    fill(api, stream, buffer)
    faults.inject("event")
    with pytest.raises(api.DeviceError, match="injected failure of this event"):
        make.event() if call == "create_event" else api.record(event, stream)
    assert api.query_event(event) is api.Progress.DONE
    api.record(event, stream)
    api.synchronize(event)


def test_a_record_that_fails_later_fails_its_event(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any
) -> None:
    faults.inject("event", later=True)
    event = make.event()
    api.record(event, stream)
    assert wait_for_failure(api, event).operation == "record"


def test_a_failure_that_is_found_late_is_thrown_by_a_later_synchronisation(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    faults.inject("launch", later=True, overlooked=2)
    fill(api, stream, buffer)
    for _ in range(2):
        assert api.query_stream(stream) is not api.Progress.FAILED
        api.synchronize(stream)
    assert api.query_stream(stream) is api.Progress.FAILED
    wait_for_failure(api, stream)


def test_delayed_work_is_pending(
    api: ModuleType, faults: ModuleType, make: Make, buffer: Any
) -> None:
    stream, waiting, event = make.stream(), make.stream(), make.event()
    hour = 3_600_000_000
    faults.set_delay(hour, hour)
    fill(api, stream, buffer)
    api.record(event, stream)
    api.wait(waiting, event)
    for progress in (*map(api.query_stream, (stream, waiting)), api.query_event(event)):
        assert progress is api.Progress.PENDING
    faults.clear()
    api.synchronize(0)


def test_a_synchronisation_waits_for_delayed_work(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    faults.set_delay(1000, 5000, seed=1)
    for _ in range(5):
        fill(api, stream, buffer)
        api.synchronize(stream)
        assert api.query_stream(stream) is api.Progress.DONE


def test_an_unsupported_launch_is_not_counted(
    api: ModuleType, faults: ModuleType, stream: Any, buffer: Any
) -> None:
    values, source = (buffer.view(i, api.DType.complex64, [1], [1]) for i in (0, 8))
    indices = buffer.view(16, api.DType.int64, [1], [1])
    sort = values, indices, source, 0, False, True
    if api.sort(stream, *sort, probe=True) is None:
        pytest.skip("the device sorts complex numbers, which have no order")
    faults.inject("launch")
    assert api.sort(stream, *sort) is not None
    with pytest.raises(api.DeviceError):
        fill(api, stream, buffer)


@pytest.fixture
def failing_check(api: ModuleType, make: Make) -> Callable[[Any], None]:
    """Makes work of the device fail on a stream."""
    needs_property("reports_errors")
    no = make.buffer(64)
    no.write(bytes(64))
    view = no.view(0, api.DType.uint8, [1], [1])

    def fail(stream: Any) -> None:
        if api.check(stream, view, "it is not so") is not None:
            pytest.skip("the device has no kernel that checks")

    return fail


def test_a_wait_reports_two_failures_of_a_stream_as_one(
    api: ModuleType,
    faults: ModuleType,
    failing_check: Callable[[Any], None],
    stream: Any,
    buffer: Any,
) -> None:
    fail(api, faults, stream, buffer)
    failing_check(stream)
    wait_for_failure(api, stream, "it is not so")
    api.acknowledge_stream(stream)
    api.synchronize(stream)
    api.synchronize(0)


def test_acknowledging_keeps_injected_failures_of_other_streams(
    api: ModuleType,
    faults: ModuleType,
    failing_check: Callable[[Any], None],
    make: Make,
    buffer: Any,
) -> None:
    first, second = make.stream(), make.stream()
    fail(api, faults, second, buffer)
    failing_check(first)
    wait_for_failure(api, 0, "it is not so")
    api.acknowledge_stream(first)
    wait_for_failure(api, 0, "injected")
    api.acknowledge_stream(second)
    api.synchronize(0)


@pytest.mark.parametrize(
    "fault",
    [
        {"call": "allocate", "later": True},
        {"call": "launch", "nth": 0},
        {"call": "launch", "overlooked": 1},
        {"call": "lunch"},
        {"call": "launch", "code": "tired"},
    ],
)
def test_a_wrong_fault_is_refused(
    faults: ModuleType, refuses: Callable[..., None], fault: dict[str, Any]
) -> None:
    refuses(partial(faults.inject, **fault))
