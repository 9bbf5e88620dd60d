"""The device interface of Dynamo. Imported after ``torch._dynamo.device_interface``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from .. import _C, devices, memory, streams
from .._build import NAME


@dataclass(frozen=True)
class Properties:
    """A device's properties under the names that Inductor reads."""

    name: str
    total_memory: int
    multi_processor_count: int
    warp_size: int


class _Worker:
    """For the processes that compile kernels. They may be forks, so this starts no runtime."""

    _current: int | None = None

    @staticmethod
    def set_device(device: int) -> None:
        _Worker._current = device

    @staticmethod
    def current_device() -> int:
        return devices.current_device() if _Worker._current is None else _Worker._current

    @staticmethod
    def get_device_properties(device: Any = None) -> Properties:
        found = devices.get_device_properties(device)
        return Properties(
            found.name,
            found.total_memory,
            max(1, found.compute_units),
            max(1, found.sub_group_size),
        )


class Interface(DeviceInterface):
    """Dynamo's interface to this device.

    ``is_gpu()`` stays false, as Inductor then expects kernels in Triton.
    """

    device = devices.device
    Event = streams.Event
    Stream = streams.Stream
    Worker = _Worker  # type: ignore[assignment]
    current_device = staticmethod(devices.current_device)
    set_device = staticmethod(devices.set_device)
    device_count = staticmethod(devices.device_count)
    is_available = staticmethod(devices.is_available)
    stream = staticmethod(streams.stream)
    current_stream = staticmethod(streams.current_stream)
    set_stream = staticmethod(streams.set_stream)
    synchronize = staticmethod(devices.synchronize)
    exchange_device = staticmethod(_C.exchange_device)
    maybe_exchange_device = staticmethod(_C.exchange_device)
    memory_allocated = staticmethod(memory.memory_allocated)
    is_bf16_supported = staticmethod(devices.is_bf16_supported)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        streams.set_stream(
            torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        )

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        stream: Any = streams.current_stream(device_idx)
        handle: int = stream.native_handle
        return handle

    @classmethod
    def get_cache_system_info(cls) -> dict[str, object]:
        """Return the device part of PyTorch's cache keys. PyTorch 2.15 and later call it."""
        properties = devices.get_device_properties()
        return {"name": properties.name, "architecture": properties.architecture}

    @staticmethod
    def get_cpp_device_options(aot_mode: bool, compile_only: bool) -> tuple[list[str], ...]:
        """Return the options for C++ code. PyTorch 2.15 and later call it."""
        from ._cpp_build import device_options

        return device_options()

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return _C.device_properties(devices.device_index(device)).architecture

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        from ._triton import find_problem

        return find_problem() is None

    @classmethod
    def raise_if_triton_unavailable(cls, device: Any = None) -> None:
        from ._triton import find_problem

        problem = find_problem()
        if problem is not None:
            raise RuntimeError(f"no kernel in Triton runs on {NAME}: {problem}")

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return devices.dtype_support(dtype) == "supported"


def register() -> None:
    """Register the interface with Dynamo, for the device with and without an index."""
    for name in (NAME, *(f"{NAME}:{index}" for index in range(devices.device_count()))):
        register_interface_for_device(name, Interface)
