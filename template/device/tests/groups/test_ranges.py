"""Ranges on the timeline of the vendor's profiling tool."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType

GROUP = "ranges"


def test_ranges_nest(api: ModuleType, refuses: Callable[..., None]) -> None:
    api.push_range("outer")
    api.push_range("inner, with a colon: and \N{LATIN SMALL LETTER U WITH DIAERESIS}")
    api.pop_range()
    api.pop_range()
    refuses(api.pop_range)


def test_each_thread_has_its_own_ranges(api: ModuleType) -> None:
    found: list[object] = []

    def pop() -> None:
        try:
            api.pop_range()
        except api.DeviceError as error:
            found.append(error.code)

    api.push_range("this thread's")
    other = threading.Thread(target=pop)
    other.start()
    other.join()
    api.pop_range()
    assert found == [api.ErrorCode.INVALID_ARGUMENT]
