"""Every test starts from device 0, its default stream and a known seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from backend import backend


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Leave no device, stream or seed behind for the next test."""
    torch.manual_seed(0)
    yield
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)
