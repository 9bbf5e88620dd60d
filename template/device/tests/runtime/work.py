"""Work for tests that need some."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def fill(api: ModuleType, stream: Any, buffer: Any, value: int = 1) -> None:
    """Enqueues a fill of the whole buffer."""
    api.fill_bytes(stream, buffer.address, value, buffer.bytes)
