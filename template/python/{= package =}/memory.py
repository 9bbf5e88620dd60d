"""Device memory in bytes: what tensors hold, what the allocator keeps, what is free."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from . import _C
from .devices import DeviceLike, device_index

__all__ = [
    "MemPool",
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
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

OutOfMemoryError = torch.OutOfMemoryError
"""Raised when a device is out of memory."""


# --- Figures ---


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """Return the allocator's counters, with the keys of ``torch.cuda.memory_stats``.

    Empty before the first use of a device.
    """
    return dict(sorted(_flat(memory_stats_as_nested_dict(device))))


def _flat(nested: dict[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in nested.items():
        # A private pool's id is a tuple.
        name = key if isinstance(key, str) else "_".join(map(str, key))
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """Return :func:`memory_stats` with a dictionary for each part of a key."""
    return _C.memory_stats(device_index(device)) if _C.is_initialized() else {}


def memory_allocated(device: DeviceLike = None) -> int:
    """Return the bytes that live tensors hold."""
    return _bytes(device)[0]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the largest value of :func:`memory_allocated` since the peaks were reset."""
    return _bytes(device)[1]


def memory_reserved(device: DeviceLike = None) -> int:
    """Return the bytes that the allocator has reserved on the device: in tensors or for reuse."""
    return _bytes(device)[2]


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the largest value of :func:`memory_reserved` since the peaks were reset."""
    return _bytes(device)[3]


def _bytes(device: DeviceLike) -> Sequence[int]:
    """Return what tensors hold and its peak, and what the allocator has and its peak."""
    return _C.memory_bytes(device_index(device)) if _C.is_initialized() else (0, 0, 0, 0)


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return the device's free and total bytes, as the device library sees them."""
    return torch.accelerator.get_memory_info(device_index(device))


def device_memory_used(device: DeviceLike = None) -> int:
    """Return the bytes of the device that are in use, by any process."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Let this process take at most a share of the device's memory.

    An allocation beyond it raises :class:`torch.OutOfMemoryError`, after unused memory was
    freed. Memory that the process already has stays reserved.

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
        raise ValueError(
            f"fraction must be from 0 to 1, got {fraction}{_more_than_all(fraction, device)}"
        )
    _C.set_memory_fraction(device_index(device), fraction)


def _more_than_all(fraction: float, device: DeviceLike) -> str:
    """Return how much that is, for whoever has divided a number of bytes by what there is."""
    index = device_index(device)
    if fraction < 0 or not math.isfinite(fraction) or index >= _C.device_count():
        return ""
    total = mem_get_info(index)[1]
    return f", which is {fraction * total / 2**20:.0f} MiB of a device that has {total / 2**20:.0f}"


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """Return the share that :func:`set_per_process_memory_fraction` has set; 1 at first."""
    return _C.memory_fraction(device_index(device))


def get_allocator_backend() -> str:
    """Return ``native``: the allocator is this backend's own."""
    return "native"


def empty_cache() -> None:
    """Give memory that the allocator keeps for reuse back to the devices."""
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Free the page-locked host memory that is kept for reuse."""
    _C.empty_host_cache()


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Reset the peaks to the current values."""
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Let the running totals start again from zero."""
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Return a table of the allocator's figures for a person to read.

    Args:
        device: which device.
        abbreviated: leave out what each figure is for large and small blocks.
    """
    index = device_index(device)
    stats = memory_stats(index)
    rows: list[tuple[str, str, Callable[[int], str]]] = [
        ("allocated memory", "allocated_bytes", _size),
        ("active memory", "active_bytes", _size),
        ("requested memory", "requested_bytes", _size),
        ("reserved memory", "reserved_bytes", _size),
        ("free parts of segments", "inactive_split_bytes", _size),
        ("allocations", "allocation", str),
        ("active allocations", "active", str),
        ("segments", "segment", str),
        ("free parts of segments", "inactive_split", str),
    ]
    kinds = {"all": "", "large_pool": "  of large blocks", "small_pool": "  of small blocks"}
    lines = [_summary_row(f"memory of device {index}", _COLUMNS)]
    for title, key, form in rows:
        for kind, name in kinds.items():
            if not abbreviated or kind == "all":
                figures = [stats.get(f"{key}.{kind}.{column}", 0) for column in _COLUMNS]
                lines.append(_summary_row(name or title, map(form, figures)))
    for title in ("oversize_allocations", "oversize_segments"):
        figures = [stats.get(f"{title}.{column}", 0) for column in _COLUMNS]
        lines.append(_summary_row(title.replace("_", " "), map(str, figures)))
    lines.append(_summary_row("out of memory", [str(stats.get("num_ooms", 0))]))
    retries = str(stats.get("num_alloc_retries", 0))
    lines.append(_summary_row("retries after a flush", [retries]))
    return "\n".join(lines) + "\n"


_COLUMNS = ("current", "peak", "allocated", "freed")


def _summary_row(title: str, values: Iterable[str]) -> str:
    return title.ljust(26) + "".join(f"{value:>14}" for value in values)


def _size(count: int) -> str:
    for unit, bytes_per_unit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_per_unit:
            return f"{count / bytes_per_unit:.2f} {unit}"
    return f"{count} B"


# --- Private pools ---


class MemPool:
    """A private pool of memory of the current device.

    What is allocated within :func:`use_mem_pool` comes from it. When neither this object nor
    :func:`use_mem_pool` holds the pool, its memory goes back to the device once it is free.

    Args:
        unified: its memory is what the host uses too, see :mod:`unified_memory`.

    Raises:
        NotImplementedError: the device has no such memory.
    """

    def __init__(self, *, unified: bool = False) -> None:
        self._pool = _C.MemPool(device_index(None), unified)

    @property
    def id(self) -> tuple[int, int]:
        """The name of the pool in statistics and snapshots."""
        return self._pool.id

    def use_count(self) -> int:
        """Return how many hold the pool: this object, and each :func:`use_mem_pool`."""
        return self._pool.use_count()


@contextmanager
def use_mem_pool(pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
    """Let what this thread allocates meanwhile on a device come from a pool.

    Args:
        pool: where from.
        device: which device's allocations; other devices' are as always.
    """
    index = device_index(device)
    _C.begin_allocate_to_pool(index, pool.id)
    try:
        yield
    finally:
        _C.end_allocate_to_pool(index, pool.id)
