"""Acknowledged failures. runtime/test_errors.py has the other tests, with injected failures."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from making import Make
from runtime.work import wait_for_failure

GROUP = "failures"


def fail(api: ModuleType, stream: Any, sentence: str = "the host has failed") -> None:
    api.fail_stream(stream, api.ErrorCode.COMMUNICATION, sentence)


def test_fail_stream_fails_the_stream(api: ModuleType, stream: Any) -> None:
    fail(api, stream)
    for wait in (api.check_stream, api.synchronize):
        with pytest.raises(api.DeviceError, match=r"^the host has failed$") as caught:
            wait(stream)
        assert caught.value.code is api.ErrorCode.COMMUNICATION
        assert (caught.value.device, caught.value.stream) == (0, stream)
    assert api.query_stream(stream) is api.Progress.FAILED


def test_events_recorded_before_fail_stream_do_not_fail(
    api: ModuleType, make: Make, stream: Any, gate: Any
) -> None:
    before, after = make.event(), make.event()
    api.record(before, stream)
    gate.hold(stream)
    api.record(after, stream)
    gate.wait_until_reached()
    fail(api, stream)
    api.synchronize(before)
    assert api.query_event(after) is api.Progress.PENDING
    gate.open()
    wait_for_failure(api, after)


def test_a_pending_wait_inherits_an_acknowledged_failure(
    api: ModuleType, make: Make, gate: Any
) -> None:
    failing, waiting, later = make.stream(), make.stream(), make.stream()
    failed = make.event()
    fail(api, failing)
    api.record(failed, failing)
    gate.hold(waiting)
    api.wait(waiting, failed)
    api.acknowledge_stream(failing)
    api.wait(later, failed)
    gate.open()
    wait_for_failure(api, waiting)
    api.synchronize(later)
    api.synchronize(failed)


def test_a_new_failure_after_an_acknowledgement_is_thrown(api: ModuleType, stream: Any) -> None:
    fail(api, stream, "the first")
    fail(api, stream, "what the first explains")
    wait_for_failure(api, stream, "the first")
    api.acknowledge_stream(stream)
    api.synchronize(stream)
    fail(api, stream, "the second")
    wait_for_failure(api, stream, "the second")


def test_the_device_reports_the_failure_of_a_destroyed_stream(api: ModuleType) -> None:
    stream = api.create_stream(0, 0)
    fail(api, stream)
    api.destroy_stream(stream)
    for _ in range(2):
        wait_for_failure(api, 0)
    api.acknowledge_device(0)
    api.synchronize(0)


def test_only_a_reset_clears_a_lost_device(api: ModuleType, make: Make) -> None:
    stream, event = make.stream(), make.event()
    fail(api, stream)
    api.fail_stream(stream, api.ErrorCode.DEVICE_LOST, "gone")
    api.record(event, stream)
    wait_for_failure(api, stream, "the host has failed")
    api.acknowledge_stream(stream)
    api.acknowledge_device(0)
    for waited in (stream, event, 0):
        wait_for_failure(api, waited, "gone")
    api.reset_device(0)
    for waited in (stream, event, 0):
        api.synchronize(waited)
