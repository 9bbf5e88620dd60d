"""Layers between PyTorch and the device library, which check or disturb what passes through."""

from __future__ import annotations

from collections.abc import Iterable

from . import _C

__all__ = ["device_layers", "set_device_layers"]


def device_layers() -> list[str]:
    """Return the layers in force, the first nearest to PyTorch.

    At first they are those of the environment variable ``<PREFIX>_DEVICE_LAYERS``, names with
    commas between them; without it there are none, except in a debug build.
    """
    return _C.device_layers()


def set_device_layers(names: Iterable[str]) -> list[str]:
    """Put these layers over the device, instead of those in force, and return what those were.

    A layer knows of streams, events and memory from the calls that it has seen, and no other thread
    may use the device meanwhile: best done before the device is used.

    Raises:
        ValueError: a name is that of no layer.
    """
    wanted, known = list(names), _C.known_device_layers()
    for name in wanted:
        if name not in known:
            raise ValueError(f"{name!r} is not a device layer: choose from {', '.join(known)}")
    before = _C.device_layers()
    _C.set_device_layers(wanted)
    return before
