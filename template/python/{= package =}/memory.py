"""Device memory in bytes: what tensors hold, what the allocator keeps, what is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _C
from .devices import DeviceLike, device_index

__all__ = [
    "OutOfMemoryError",
    "device_memory_used",
    "empty_cache",
    "empty_host_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

OutOfMemoryError = torch.OutOfMemoryError
"""What is raised where a device has no more memory."""


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Return the allocator's counters; the keys are those of ``torch.accelerator.memory_stats``."""
    return dict(torch.accelerator.memory_stats(device_index(device)))


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """Return :func:`memory_stats` with a dictionary for each part of a key."""
    nested: dict[str, Any] = {}
    for key, value in memory_stats(device).items():
        *parts, last = key.split(".")
        place = nested
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


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


def device_memory_used(device: DeviceLike = None) -> int:
    """Return the bytes of the device that are in use, by any process."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Let this process take at most a share of the device's memory.

    An allocation beyond it raises :class:`torch.OutOfMemoryError`, after what is kept for reuse was
    given back. Memory that the process has already is not taken away.

    Args:
        fraction: of ``get_device_properties(device).total_memory``, from 0 to 1.
        device: which device.

    Raises:
        TypeError: ``fraction`` is no float.
        ValueError: ``fraction`` is out of range, or ``device`` is of another type.
    """
    if not isinstance(fraction, float):
        raise TypeError(f"fraction must be a float, got {fraction!r}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be from 0 to 1, got {fraction}")
    _C.set_memory_fraction(device_index(device), fraction)


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """Return the share that :func:`set_per_process_memory_fraction` has set; 1 at first."""
    return _C.memory_fraction(device_index(device))


def get_allocator_backend() -> str:
    """Return ``native``: the allocator is this backend's own."""
    return "native"


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """Return what the allocator has from all devices, as ``torch.cuda.memory_snapshot`` does.

    Each segment is one block, since memory is handed out as it came from the device. The tools of
    ``torch.cuda._memory_viz`` read ``{"segments": memory_snapshot()}``.

    Args:
        mempool_id: a memory pool; there is only the common one, (0, 0).
        include_traces: taken for the sake of ``torch.cuda``; segments hold no traces.
    """
    if mempool_id not in (None, _POOL):
        return []
    return [
        _segment(device, *piece)
        for device in range(_C.device_count())
        for piece in _C.memory_snapshot(device)
    ]


_POOL = (0, 0)
_STATES = ("active_allocated", "active_awaiting_free", "inactive")  # of MemoryPiece::State
_LARGE = 2**20


def _segment(
    device: int, address: int, size: int, requested: int, stream: int, state: int
) -> dict[str, Any]:
    allocated, active = state == 0, state < 2
    block = {
        "address": address,
        "size": size,
        "requested_size": requested if active else 0,
        "state": _STATES[state],
        "frames": [],
    }
    return {
        "device": device,
        "address": address,
        "total_size": size,
        "allocated_size": size if allocated else 0,
        "active_size": size if active else 0,
        "requested_size": requested if active else 0,
        "stream": stream,
        "segment_type": "small" if size <= _LARGE else "large",
        "segment_pool_id": _POOL,
        "is_expandable": False,
        "frames": [],
        "blocks": [block],
    }


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
