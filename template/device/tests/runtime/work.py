"""Work for tests."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest


def fill(api: ModuleType, stream: Any, buffer: Any, value: int = 1) -> None:
    """Enqueues a fill of the whole buffer."""
    api.fill_bytes(stream, buffer.address, value, buffer.bytes)


def fail(
    api: ModuleType,
    faults: ModuleType,
    stream: Any,
    buffer: Any,
    value: int = 1,
    code: str = "internal",
) -> None:
    """Enqueues a fill that fails later."""
    faults.inject("launch", code=code, later=True)
    fill(api, stream, buffer, value)


def wait_for_failure(api: ModuleType, waited: Any, says: str = ".") -> Any:
    """Waits for a stream, an event or a device whose work has failed, and returns the failure."""
    with pytest.raises(api.DeviceError, match=says) as caught:
        api.synchronize(waited)
    return caught.value
