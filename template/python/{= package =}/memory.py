"""Device memory: bytes in tensors, bytes reserved by the allocator, free bytes, private pools."""

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

    The dictionary is empty before the first use of a device.
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
    """Return :func:`memory_stats` as nested dictionaries, one level for each part of a key."""
    return _C.memory_stats(device_index(device)) if _C.is_initialized() else {}


def memory_allocated(device: DeviceLike = None) -> int:
    """Return the bytes that live tensors hold."""
    return _bytes(device)[0]


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the largest value of :func:`memory_allocated` since the peaks were reset."""
    return _bytes(device)[1]


def memory_reserved(device: DeviceLike = None) -> int:
    """Return the bytes that the allocator has reserved on the device, in use or cached."""
    return _bytes(device)[2]


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the largest value of :func:`memory_reserved` since the peaks were reset."""
    return _bytes(device)[3]


def _bytes(device: DeviceLike) -> Sequence[int]:
    """Return the bytes in tensors and their peak, and the reserved bytes and their peak."""
    return _C.memory_bytes(device_index(device)) if _C.is_initialized() else (0, 0, 0, 0)


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Return the device's free and total bytes, as the device library reports them."""
    return torch.accelerator.get_memory_info(device_index(device))


def device_memory_used(device: DeviceLike = None) -> int:
    """Return the bytes of the device that are in use, by any process."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Limit this process to a fraction of the device's memory.

    An allocation that exceeds the limit after cached memory is released raises
    :class:`torch.OutOfMemoryError`. Memory that the process has already reserved stays reserved.

    Args:
        fraction: of ``get_device_properties(device).total_memory``, from 0 to 1.
        device: which device.

    Raises:
        TypeError: ``fraction`` is not a float.
        ValueError: ``fraction`` is out of range, or ``device`` is of another type.
    """
    if not isinstance(fraction, float):
        raise TypeError(f"fraction must be a float, got {fraction!r}")
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"fraction must be from 0 to 1, got {fraction}{_fraction_hint(fraction, device)}"
        )
    _C.set_memory_fraction(device_index(device), fraction)


def _fraction_hint(fraction: float, device: DeviceLike) -> str:
    """Explain a ``fraction`` above 1 in MiB, for the error message. Return "" for others."""
    index = device_index(device)
    if fraction < 0 or not math.isfinite(fraction) or index >= _C.device_count():
        return ""
    total = mem_get_info(index)[1]
    return f", which is {fraction * total / 2**20:.0f} MiB of a device that has {total / 2**20:.0f}"


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """Return the limit of :func:`set_per_process_memory_fraction`. The default is 1."""
    return _C.memory_fraction(device_index(device))


def get_allocator_backend() -> str:
    """Return ``native``, for this backend's own allocator."""
    return "native"


def empty_cache() -> None:
    """Release the allocator's cached memory to the devices."""
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Free the cached page-locked host memory."""
    _C.empty_host_cache()


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Reset the peaks to the current values."""
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Reset the accumulated totals to zero."""
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Return a table of the allocator's statistics in a readable form.

    Args:
        device: which device.
        abbreviated: omit the rows for large and small blocks.
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
    """A private memory pool of the current device.

    Allocations within :func:`use_mem_pool` come from the pool. After this object is deleted and
    :func:`use_mem_pool` has ended, the pool returns its memory to the device once it is free.

    Args:
        unified: whether the pool has unified memory, see :mod:`unified_memory`.

    Raises:
        NotImplementedError: the device has no unified memory.
    """

    def __init__(self, *, unified: bool = False) -> None:
        self._pool = _C.MemPool(device_index(None), unified)

    @property
    def id(self) -> tuple[int, int]:
        """The id of the pool in statistics and snapshots."""
        return self._pool.id

    def use_count(self) -> int:
        """Return the number of users of the pool: this object and each :func:`use_mem_pool`."""
        return self._pool.use_count()


@contextmanager
def use_mem_pool(pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
    """Context manager in which this thread's allocations on a device come from a pool.

    Args:
        pool: the pool to allocate from.
        device: the device of the allocations. Allocations on other devices do not change.
    """
    index = device_index(device)
    _C.begin_allocate_to_pool(index, pool.id)
    try:
        yield
    finally:
        _C.end_allocate_to_pool(index, pool.id)
