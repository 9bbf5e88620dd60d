"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def buffer(make_buffer: Callable[..., Any]) -> Any:
    """64 bytes of device 0."""
    return make_buffer(64)
