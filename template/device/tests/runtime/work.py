"""Work for tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

THREADS = 4


def in_threads(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Runs work(0), work(1), ... in parallel, and raises the first exception."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


def fill(api: ModuleType, stream: Any, buffer: Any, value: int = 1) -> None:
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
