"""Plans: what the device has compiled or planned for a kind of launch, and finds in the next one.

Launches are of one kind where operation, element types, sizes and strides are the same. Only
devices whose kernels take time to prepare keep plans; of others all figures are zero.
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
    """Return the figures of the device's plans.

    - ``kinds`` of launches that are known now, of at most ``limit``;
    - ``waiting``: plans that are known no more, and that work on the device may still use;
    - ``hits``: launches of a kind that was known, and ``misses``: launches of another;
    - ``evictions`` of kinds that were not used for long, and ``releases`` of their plans;
    - ``answers``: probes that were answered without a call of the device.

    The last five are counted since the start or :func:`reset_plan_stats`.
    """
    stats: dict[str, int] = _C.plan_stats(device_index(device))
    return stats


def reset_plan_stats(device: DeviceLike = None) -> None:
    """Start counting again from zero."""
    _C.reset_plan_stats(device_index(device))


def clear_plans(device: DeviceLike = None) -> None:
    """Drop all plans of the device. Plans that running work or a graph uses are released later."""
    _C.clear_plans(device_index(device))


def set_plan_limit(kinds: int) -> None:
    """Keep the plans of so many kinds of launches for each device, and at least of one.

    At first it is 4096, or what the environment variable ``<PREFIX>_PLAN_LIMIT`` says.

    Raises:
        ValueError: the number is negative.
    """
    if kinds < 0:
        raise ValueError(f"a limit is a number from 0 on, not {kinds}")
    _C.set_plan_limit(kinds)


def set_cache_folder(path: str | Path | None) -> None:
    """Keep compiled kernels in this folder, which other processes may use, too; None for nowhere.

    The folder is made for this user alone if it is not there. The next process finds what is in it,
    and compiles nothing that this one has compiled. At first it is what the environment variable
    ``<PREFIX>_CACHE_FOLDER`` names.

    Raises:
        NotImplementedError: the device library keeps no kernels in a folder.
        PermissionError: it is another user's, or others may write there.
        OSError: the folder cannot be made.
    """
    if path is None:
        _C.set_cache_folder("")
        return
    _C.set_cache_folder(str(private_folder(Path(path).absolute())))
