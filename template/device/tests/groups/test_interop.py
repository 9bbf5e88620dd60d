"""Handles for code that calls the SDK directly."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

GROUP = "interop"


def test_each_event_has_a_handle_of_its_own_that_stays(
    api: ModuleType, stream: Any, make_event: Callable[..., Any]
) -> None:
    events = [make_event(), make_event()]
    handles = [api.native_event_handle(event) for event in events]
    assert None not in handles
    assert handles[0] != handles[1]
    api.record(events[0], stream)
    api.synchronize(stream)
    assert [api.native_event_handle(event) for event in events] == handles
