"""Plans: compiled or prepared kernels that the device caches and reuses for launches of a kind.

Launches are of one kind if operation, dtypes, sizes and strides are the same. Only devices whose
kernels take time to prepare keep plans; for other devices all statistics are zero.
"""

from __future__ import annotations

from pathlib import Path

from . import _C
from ._private import private_folder
from .devices import DeviceLike, device_index

__all__ = [
    "clear_plans",
    "plan_stats",
    "reset_plan_stats",
    "set_cache_folder",
    "set_plan_limit",
]


def plan_stats(device: DeviceLike = None) -> dict[str, int]:
    """Return the statistics of the device's plans.

    - ``kinds``: cached kinds of launches, at most ``limit``;
    - ``waiting``: removed plans that running work may still use;
    - ``hits``: launches of a cached kind, and ``misses``: launches of another kind;
    - ``evictions``: kinds that made room for others, and ``releases``: released plans;
    - ``answers``: probes that were answered without a call of the device library.

    The last five are counted since the start or the last :func:`reset_plan_stats`.
    """
    stats: dict[str, int] = _C.plan_stats(device_index(device))
    return stats


def reset_plan_stats(device: DeviceLike = None) -> None:
    """Reset the counts to zero."""
    _C.reset_plan_stats(device_index(device))


def clear_plans(device: DeviceLike = None) -> None:
    """Remove all plans of the device. Plans that running work or a graph uses are freed later."""
    _C.clear_plans(device_index(device))


def set_plan_limit(kinds: int) -> None:
    """Set the maximum number of kinds of launches whose plans each device caches.

    0 has the effect of 1. The default is the environment variable ``<PREFIX>_PLAN_LIMIT``, or 4096.

    Raises:
        ValueError: ``kinds`` is negative.
    """
    if kinds < 0:
        raise ValueError(f"a limit is a number from 0 on, not {kinds}")
    _C.set_plan_limit(kinds)


def set_cache_folder(path: str | Path | None) -> None:
    """Set the folder for compiled kernels. None or "" disables the cache.

    If the folder does not exist, it is created with access for this user only. Other and later
    processes can use it, and do not compile its kernels again. The default is the environment
    variable ``<PREFIX>_CACHE_FOLDER``.

    Raises:
        NotImplementedError: the device library does not store kernels in a folder.
        PermissionError: the folder belongs to another user, or others can write to it.
        OSError: the folder cannot be created.
    """
    if path is None or path == "":
        _C.set_cache_folder("")
        return
    _C.set_cache_folder(str(private_folder(Path(path).absolute())))
