"""Host memory for copies, pageable or page-locked."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def pattern(size: int, seed: int = 0) -> Bytes:
    """Bytes that make a shifted or truncated copy visible."""
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


def at(address: int, size: int) -> Bytes:
    """The host memory at an address, as an array without a copy."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def address_of(array: Bytes) -> int:
    return int(array.ctypes.data)
