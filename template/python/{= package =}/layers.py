"""Layers between PyTorch and the device library, which check or disturb the calls."""

from __future__ import annotations

from collections.abc import Iterable

from . import _C

__all__ = ["device_layers", "set_device_layers"]


def device_layers() -> list[str]:
    """Return the active layers. The first one is nearest to PyTorch.

    The default is the layers named in the environment variable ``<PREFIX>_DEVICE_LAYERS``,
    separated by commas, plus layers that their own variables select. Without the first variable, a
    debug build adds ``validate``.
    """
    return _C.device_layers()


def set_device_layers(names: Iterable[str]) -> list[str]:
    """Replace the active layers, and return the previous ones.

    Call this before the first use of the device: a layer handles only the streams, events and
    memory of calls that passed through it. No other thread may use the device during the call.

    Raises:
        ValueError: a layer does not exist.
    """
    wanted, known = list(names), _C.known_device_layers()
    for name in wanted:
        if name not in known:
            raise ValueError(f"{name!r} is not a device layer: choose from {', '.join(known)}")
    before = _C.device_layers()
    _C.set_device_layers(wanted)
    return before
