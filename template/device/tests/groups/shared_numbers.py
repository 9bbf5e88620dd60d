"""32-bit numbers in memory that two processes share, by the address in the calling process."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

SIZE = 4000
COUNT = np.arange(1000, dtype=np.int32)


def write(api: ModuleType, address: int, values: Any, device: int = 0) -> None:
    values = np.asarray(values, np.int32)
    stream = api.default_stream(device)
    api.copy_bytes(stream, (address, device), (values.ctypes.data, api.HOST), values.nbytes)


def read(api: ModuleType, address: int, size: int = 1000, device: int = 0) -> Any:
    values = np.empty(size, np.int32)
    stream = api.default_stream(device)
    api.copy_bytes(stream, (values.ctypes.data, api.HOST), (address, device), values.nbytes)
    return values


def add(api: ModuleType, stream: Any, address: int, number: int, size: int = 1000) -> None:
    view = api.View(address, api.DType.int32, size)
    reason = api.binary(stream, api.BinaryOp.add, view, view, number, api.BinaryParams())
    if reason is not None:
        pytest.skip(f"the device does not support add of integers: {reason}")
