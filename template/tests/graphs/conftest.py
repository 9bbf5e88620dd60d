"""Skips these tests on a device without graphs."""

from __future__ import annotations

import pytest
from support import has_function

PRESENT = has_function("graphs", "begin_capture")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip all tests in this folder if the device cannot capture."""
    for item in items:
        if "tests/graphs" in item.path.as_posix() and not PRESENT:
            item.add_marker(pytest.mark.skip(reason="the device library has no graphs"))
