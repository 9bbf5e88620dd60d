"""Streams, events and the current stream.

A stream is a queue of work on one device; only events order the work of different streams.
``torch.Stream`` also works. The class here always uses this backend's devices. Events are
``torch.Event``.
"""

from __future__ import annotations

from typing import Any

import torch
from typing_extensions import Self

from . import _C
from ._build import NAME
from .devices import DeviceLike, device_index, get_device_properties

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "is_current_stream_capturing",
    "set_stream",
    "stream",
]


class Stream(torch.Stream):
    """A queue of work on one device.

    Args:
        device: the device of the stream.
        priority: smaller numbers run first. 0 is the priority of the default stream. Values outside
            the device's range are clamped.

    Raises:
        ValueError: ``device`` is of another type.
    """

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **kwargs: Any) -> Self:
        if kwargs:  # the numbers of an existing stream
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, torch.device(NAME, device_index(device)), priority=priority)

    @property
    def priority(self) -> int:
        """The priority of the stream on the device."""
        return _C.stream_priority(self.device_index, self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority of the current device; the first is larger."""
        properties = get_device_properties()
        return properties.lowest_priority, properties.highest_priority


# As in torch.cuda, the first stream that records an event determines the event's device. PyTorch
# measures the time only between events of exactly this class, so there is no subclass.
Event = torch.Event


def current_stream(device: DeviceLike = None) -> Stream:
    """Return the current stream of ``device`` in this thread."""
    return _wrap(torch._C._accelerator_getStream(device_index(device)))


def default_stream(device: DeviceLike = None) -> Stream:
    """Return the default stream of ``device``."""
    current = current_stream(device)
    return Stream(stream_id=0, device_index=current.device_index, device_type=current.device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Make ``stream`` current on its device, and its device current. None has no effect."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Context manager that makes ``stream`` and its device current.

    On exit it restores the previous stream and device. None has no effect. It does not order the
    stream with other streams: use ``wait_stream`` or events.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: list[tuple[int, Stream]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            self._previous.append((_C.current_device(), current_stream(self.stream.device)))
            set_stream(self.stream)

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is not None:
            index, previous = self._previous.pop()
            set_stream(previous)
            _C.set_device(index)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Return a context manager that makes ``stream`` current, see :class:`StreamContext`."""
    return StreamContext(stream)


def is_current_stream_capturing() -> bool:
    """Return whether a graph captures the work of the current stream."""
    return _C.is_current_stream_capturing()


def _wrap(value: torch.Stream) -> Stream:
    return Stream(
        stream_id=value.stream_id,
        device_index=value.device_index,
        device_type=value.device_type,
    )
