"""Failures of asynchronous work, which are known only after the operator has returned.

A failure belongs to the stream whose work has failed, and to each stream that waits for it. The
next synchronization or copy to the host raises it, once on each thread that uses the stream.
"""

from __future__ import annotations

import torch

from . import _C
from ._build import NAME
from .devices import DeviceLike, device_index

__all__ = ["acknowledge_failure", "last_failure", "reset_device"]


def acknowledge_failure(stream: torch.Stream | None = None) -> None:
    """Clear the failures of ``stream`` so far, or those of all streams of all devices.

    After that, no thread raises them. A thread that has raised a failure can continue without an
    acknowledgement. The results of failed work are undefined. A stream that has waited for
    ``stream`` keeps its failures, and a lost device stays lost until :func:`reset_device`.

    Raises:
        NotImplementedError: the device library cannot clear failures.
        ValueError: ``stream`` is on a device of another type.
    """
    if stream is not None:
        _C.acknowledge_stream(*_names(stream))
        return
    for device in _C.used_devices():
        _C.acknowledge_device(device)


def last_failure(stream: torch.Stream | None = None) -> RuntimeError | None:
    """Return a failure that this thread has yet to raise on ``stream`` or on any stream, or None.

    This does not wait, so it returns failures of completed work only. The failure is still raised
    later.

    Raises:
        NotImplementedError: the device library cannot query failures without waiting.
        ValueError: ``stream`` is on a device of another type.
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
    """Reset a lost device so that it can be used again, and clear the failures of all its streams.

    Waits for the work that still runs there. Tensors stay valid; after a loss their values are
    undefined.

    Raises:
        NotImplementedError: the device library cannot reset devices.
        RuntimeError: the reset failed.
        ValueError: ``device`` is of another type.
    """
    _C.reset_device(device_index(device))


def _names(stream: torch.Stream) -> tuple[int, int]:
    if not isinstance(stream, torch.Stream) or stream.device.type != NAME:
        raise ValueError(f"expected a stream of a {NAME} device, got {stream!r}")
    return stream.device_index, stream.stream_id
