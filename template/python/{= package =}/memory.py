"""Device memory in bytes: what tensors hold, what the allocator keeps, what is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _C
from .devices import DeviceLike, device_index

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Return the allocator's counters; the keys are those of ``torch.accelerator.memory_stats``."""
    return dict(torch.accelerator.memory_stats(device_index(device)))


def memory_allocated(device: DeviceLike = None) -> int:
    """Return the bytes that live tensors hold."""
    return torch.accelerator.memory_allocated(device_index(device))


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the largest value of :func:`memory_allocated` since the peaks were reset."""
    return torch.accelerator.max_memory_allocated(device_index(device))


def memory_reserved(device: DeviceLike = None) -> int:
    """Return the bytes that the allocator has from the device: in tensors or kept for reuse."""
    return torch.accelerator.memory_reserved(device_index(device))


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the largest value of :func:`memory_reserved` since the peaks were reset."""
    return torch.accelerator.max_memory_reserved(device_index(device))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return the device's free and total bytes, as the device library sees them."""
    return torch.accelerator.get_memory_info(device_index(device))


def empty_cache() -> None:
    """Give memory that the allocator keeps for reuse back to the devices."""
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Give page-locked host memory that is kept for reuse back to the system."""
    _C.empty_host_cache()


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peaks start again from what is held now."""
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Let the running totals start again from zero."""
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Return a table of the allocator's figures for a person to read.

    Args:
        device: which device.
        abbreviated: leave out the running totals.
    """
    index = device_index(device)
    stats = memory_stats(index)
    columns = ["current", "peak"] if abbreviated else ["current", "peak", "allocated", "freed"]
    rows: list[tuple[str, str, Callable[[int], str]]] = [
        ("tensors", "allocated_bytes", _size),
        ("reserved", "reserved_bytes", _size),
        ("allocations", "allocation", str),
        ("segments", "segment", str),
    ]
    lines = [f"memory of device {index}".ljust(24) + "".join(f"{name:>14}" for name in columns)]
    for title, key, form in rows:
        values = (form(stats.get(f"{key}.all.{column}", 0)) for column in columns)
        lines.append(title.ljust(24) + "".join(f"{value:>14}" for value in values))
    lines.append("out of memory".ljust(24) + f"{stats.get('num_ooms', 0):>14}")
    lines.append("retries after a flush".ljust(24) + f"{stats.get('num_alloc_retries', 0):>14}")
    return "\n".join(lines) + "\n"


def _size(count: int) -> str:
    for unit, bytes_per_unit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_per_unit:
            return f"{count / bytes_per_unit:.2f} {unit}"
    return f"{count} B"
