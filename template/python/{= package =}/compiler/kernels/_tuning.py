"""``mode="max-autotune"``: selects the group shape of a kernel that is fastest on the device.

All shapes compute the same, except that sums are added in another order, so last bits may differ.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ... import _C
from ..._private import keep
from ...devices import DeviceLike, get_device_properties, synchronize
from ._launch import define_kernel, kernel_cache

_RUNS = 5


@dataclass(frozen=True)
class Shape:
    """One way to divide the rows of a kernel into groups."""

    rows: int
    """The number of rows of a group."""
    items: int
    """The number of work items of a group."""
    source: str
    """The kernel for this shape."""


def define_tuned_kernel(
    name: str, device: int, kinds: Sequence[str], shapes: Sequence[tuple[int, int, str]]
) -> Callable[..., None]:
    """Return a function that enqueues the fastest of several equivalent kernels.

    The function takes the number of rows, then the arguments, as for :func:`define_kernel`. The
    first call measures, and stores the selection in the cache folder for later processes.

    Args:
        name: the name of the function in each source.
        device: the index of the device.
        kinds: the kinds of the parameters.
        shapes: the fields of each :class:`Shape`; the first one is the default without measuring.
    """
    return _Tuned(name, device, kinds, [Shape(*each) for each in shapes])


def best_seconds(
    call: Callable[[], object], device: DeviceLike, before: Callable[[], object] | None = None
) -> float:
    """Return the time of a call and its work on the device in seconds, the best of several runs.

    Args:
        call: the function to measure.
        device: the device of its work.
        before: a function to run before each measurement.
    """
    best = float("inf")
    for _ in range(_RUNS):
        if before is not None:
            before()
        synchronize(device)
        begin = time.perf_counter()
        call()
        synchronize(device)
        best = min(best, time.perf_counter() - begin)
    return best


class _Tuned:
    def __init__(
        self, name: str, device: int, kinds: Sequence[str], shapes: Sequence[Shape]
    ) -> None:
        self._device, self._kinds, self._shapes = device, kinds, shapes
        self._chosen = self._known()
        # Kernels that are known to be slower are not loaded.
        self._launches = {
            place: define_kernel(name, device, kinds, each.items, each.source)
            for place, each in enumerate(shapes)
            if self._chosen in (None, place)
        }

    def __call__(self, rows: int, *arguments: Any) -> None:
        # A measurement would wait, which a capture does not allow.
        if self._chosen is None and not _C.is_current_stream_capturing():
            self._chosen = self._measured(rows, arguments)
        self._launch(self._chosen or 0, rows, arguments)

    def _launch(self, place: int, rows: int, arguments: Sequence[Any]) -> None:
        self._launches[place](-(-rows // self._shapes[place].rows), *arguments)

    def _file(self) -> Path:
        properties = get_device_properties(self._device)
        known = repr((self._shapes, properties.name, properties.architecture))
        return kernel_cache() / f"{hashlib.sha256(known.encode()).hexdigest()}.shape.json"

    def _known(self) -> int | None:
        """Return the stored selection for this kind of device."""
        try:
            place = json.loads(self._file().read_text())
        except (OSError, ValueError):
            return None
        return place if place in range(len(self._shapes)) else None

    def _measured(self, rows: int, arguments: Sequence[Any]) -> int:
        try:
            trial = [
                value.clone() if kind == "written" else value
                for kind, value in zip(self._kinds, arguments, strict=True)
            ]
            times = [self._time(each, rows, arguments, trial) for each in range(len(self._shapes))]
        except torch.OutOfMemoryError:
            return 0
        place = times.index(min(times))
        keep(self._file(), json.dumps(place).encode())
        return place

    def _time(self, place: int, rows: int, arguments: Sequence[Any], trial: Sequence[Any]) -> float:
        """Return the time of the kernel in seconds. Each run starts with the same values."""

        def restore() -> None:
            for kind, value, copy in zip(self._kinds, arguments, trial, strict=True):
                if kind == "written":
                    copy.copy_(value)

        try:
            return best_seconds(lambda: self._launch(place, rows, trial), self._device, restore)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            if place == 0:
                raise
            return float("inf")  # the group is too large for the device
