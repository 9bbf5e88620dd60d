"""Fixtures of the simulator's own tests: its knobs, its settings and its checks."""

from __future__ import annotations

from typing import Any

import making
import pytest
from making import Make

make = making.make


@pytest.fixture
def buffer(make: Make) -> Any:
    """64 bytes of device 0."""
    return make.buffer(64)
