"""Waits in which the thread sleeps."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

from device_library import needs_property
from making import Make
from runtime.work import wait_for_failure

GROUP = "waits"


def test_an_event_without_work_is_done_at_once(api: ModuleType, stream: Any, make: Make) -> None:
    event = make.event()
    assert api.wait_event(event, 1000) is api.Progress.DONE
    api.record(event, stream)
    assert api.wait_event(event, 10_000) is api.Progress.DONE


def test_a_wait_ends_with_the_work_or_the_timeout(api: ModuleType, stream: Any, make: Make) -> None:
    needs_property("host_functions")
    event = make.event()
    api.launch_host(stream, lambda: time.sleep(0.3))
    api.record(event, stream)
    start = time.monotonic()
    assert api.wait_event(event, 20) is api.Progress.PENDING
    assert time.monotonic() - start < 0.25
    used = time.thread_time()
    assert api.wait_event(event, 20_000) is api.Progress.DONE
    assert 0.2 < time.monotonic() - start < 10
    # The thread sleeps and does not poll.
    assert time.thread_time() - used < 0.05


def test_wait_event_returns_a_failure_and_does_not_throw(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    stream, event = make.stream(), make.event()
    buffer = api.Buffer(0, 64)
    faults.inject("launch", later=True)
    api.fill_bytes(stream, buffer.address, 1, 64)
    api.record(event, stream)
    assert api.wait_event(event, 10_000) is api.Progress.FAILED
    wait_for_failure(api, stream, "injected failure")
    api.acknowledge_stream(stream)
