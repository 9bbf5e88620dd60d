"""Failures until they are acknowledged, and queries that find them without a wait."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from making import Make
from runtime.work import fail, fill, wait_for_failure


@pytest.mark.parametrize("acknowledge", ["stream", "device"])
def test_every_synchronisation_throws_an_error_until_it_is_acknowledged(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any, acknowledge: str
) -> None:
    event = make.event()
    fail(api, faults, stream, buffer)
    api.record(event, stream)
    fill(api, stream, buffer)
    for waited in (stream, event, 0, stream, event, 0):
        wait_for_failure(api, waited)
    if acknowledge == "stream":
        api.acknowledge_stream(stream)
    else:
        api.acknowledge_device(0)
    for waited in (stream, event, 0):
        api.synchronize(waited)
    assert api.query_stream(stream) is api.query_event(event) is api.Progress.DONE
    fail(api, faults, stream, buffer)
    wait_for_failure(api, stream)


def test_check_stream_throws_without_waiting(
    api: ModuleType, faults: ModuleType, make: Make, buffer: Any
) -> None:
    stream, other = make.stream(), make.stream()
    fail(api, faults, stream, buffer)
    while api.query_stream(stream) is api.Progress.PENDING:
        pass
    for _ in range(2):
        api.check_stream(other)
        with pytest.raises(api.DeviceError, match="injected failure"):
            api.check_stream(stream)
    api.acknowledge_stream(stream)
    api.check_stream(stream)


def test_acknowledging_does_not_clear_streams_that_waited(
    api: ModuleType, faults: ModuleType, make: Make, stream: Any, buffer: Any
) -> None:
    event, waiting = make.event(), make.stream()
    fail(api, faults, stream, buffer)
    api.record(event, stream)
    api.wait(waiting, event)
    api.acknowledge_stream(stream)
    api.synchronize(stream)
    wait_for_failure(api, waiting)
    api.acknowledge_stream(waiting)
    api.synchronize(waiting)
