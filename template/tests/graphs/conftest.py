"""Nothing here runs on a device without graphs, but for the test that it says so."""

from __future__ import annotations

import pytest
from support import has_function

PRESENT = has_function("graphs", "begin_capture")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what captures where the device cannot."""
    for item in items:
        if "tests/graphs" in item.path.as_posix() and not PRESENT:
            item.add_marker(pytest.mark.skip(reason="the device library has no graphs"))
