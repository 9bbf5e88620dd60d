"""Failures of work that shows only after its operator has returned.

Such a failure belongs to the stream whose work has failed, and to each stream that waits for it. The
next synchronisation or copy to the host raises it, once on each thread that uses the stream.
"""

from __future__ import annotations

import torch

from . import _C
from ._build import NAME
from .devices import DeviceLike, device_index

__all__ = ["acknowledge_failure", "last_failure", "reset_device"]


def acknowledge_failure(stream: torch.Stream | None = None) -> None:
    """Forget the failures that ``stream`` has met so far, or those of all streams of all devices.

    No thread raises them after that. Where one was raised, the later calls of that thread work
    without an acknowledgement.
    What failed work was to write is undefined. A stream that has waited for ``stream`` keeps its
    failures, and a lost device stays lost until :func:`reset_device`.

    Raises:
        NotImplementedError: the device library cannot forget failures.
        ValueError: ``stream`` is of a device of another type.
    """
    if stream is not None:
        _C.acknowledge_stream(*_names(stream))
        return
    for device in _C.used_devices():
        _C.acknowledge_device(device)


def last_failure(stream: torch.Stream | None = None) -> RuntimeError | None:
    """Return what ``stream``, or any stream of any device, would raise now on this thread, or None.

    It waits for nothing, so only work that is over is known. The failure is still raised later.

    Raises:
        NotImplementedError: the device library cannot look without waiting.
        ValueError: ``stream`` is of a device of another type.
    """
    try:
        if stream is not None:
            _C.check_stream(*_names(stream))
        else:
            _C.check_streams()
    except NotImplementedError:
        raise
    except RuntimeError as error:
        return error
    return None


def reset_device(device: DeviceLike = None) -> None:
    """Take a device back into use that was lost, and forget the failures of all its streams.

    Waits for what still runs there. Tensors stay valid; after a loss their values are undefined.

    Raises:
        NotImplementedError: the device library cannot do it.
        RuntimeError: the device does not come back.
        ValueError: ``device`` is of another type.
    """
    _C.reset_device(device_index(device))


def _names(stream: torch.Stream) -> tuple[int, int]:
    if not isinstance(stream, torch.Stream) or stream.device.type != NAME:
        raise ValueError(f"expected a stream of a {NAME} device, got {stream!r}")
    return stream.device_index, stream.stream_id
