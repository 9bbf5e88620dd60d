"""Functions of the simulator for tests, in addition to the functions of a device."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import device_library


class Knobs:
    """The functions of `simulator/knobs.h`, of the library that the module `_device` has loaded.

    Raises:
        AttributeError: it is the library of another device.
    """

    def __init__(self) -> None:
        path = os.environ.get(device_library.VARIABLE) or device_library.NAME
        library = ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
        self._set_memory_limit: Any = library.simulator_set_memory_limit
        self._set_memory_limit.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self._compilations: Any = library.simulator_compilations
        self._compilations.restype = ctypes.c_int64
        self._library: Any = library

    def set_memory_limit(self, device: int, size: int) -> None:
        self._set_memory_limit(device, size)

    def compilations(self) -> int:
        """The number of kernels that this process has compiled."""
        return int(self._compilations())

    def unified_state(self, address: int) -> tuple[int, int]:
        """The location of the unified memory at an address, and the advice for it."""
        place, advice = ctypes.c_int(), ctypes.c_int()
        read = self._library.simulator_unified_state
        read.restype = ctypes.c_bool
        assert read(ctypes.c_size_t(address), ctypes.byref(place), ctypes.byref(advice))
        return place.value, advice.value
