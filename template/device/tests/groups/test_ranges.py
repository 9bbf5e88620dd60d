"""Ranges on the timeline of the vendor's profiling tool."""

from __future__ import annotations

import threading
from types import ModuleType

import pytest

GROUP = "ranges"


def test_ranges_nest(api: ModuleType) -> None:
    api.push_range("outer")
    api.push_range("inner, with a colon: and \N{LATIN SMALL LETTER U WITH DIAERESIS}")
    api.pop_range()
    api.pop_range()
    with pytest.raises(api.DeviceError) as caught:
        api.pop_range()
    assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT


def test_a_thread_has_ranges_of_its_own(api: ModuleType) -> None:
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
