"""Streams, events, and which stream is current.

A stream is a queue of work on one device; work in different streams is ordered only by events.
``torch.Stream`` serves as well: the class here differs in that it always means this backend's
devices. Events are PyTorch's own.
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
        device: where the stream lives.
        priority: smaller numbers run first, and 0, the default stream's, is the normal one; values
            outside the device's range are moved to its nearest end.

    Raises:
        ValueError: ``device`` is of another type.
    """

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **kwargs: Any) -> Self:
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, torch.device(NAME, device_index(device)), priority=priority)

    @property
    def priority(self) -> int:
        """The priority with which the device serves the stream."""
        return _C.stream_priority(self.device_index, self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority, the larger number first, of this device."""
        properties = get_device_properties()
        return properties.lowest_priority, properties.highest_priority


# A mark in a stream, to wait for and to measure time with. The first stream that records an event
# decides on the event's device, as in torch.cuda: PyTorch keeps no index before. It measures only
# between events of exactly this class, so there is no subclass that would insist on one.
Event = torch.Event


def current_stream(device: DeviceLike = None) -> Stream:
    """Return the stream of ``device`` that this thread's operators go to."""
    return _wrap(torch._C._accelerator_getStream(device_index(device)))


def default_stream(device: DeviceLike = None) -> Stream:
    """Return the stream of ``device`` that is current unless another one was chosen."""
    current = current_stream(device)
    return Stream(stream_id=0, device_index=current.device_index, device_type=current.device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Make ``stream`` current on its device, and its device current. None changes nothing."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Context manager in which operators go to ``stream``, on the stream's device.

    On exit the device and its stream are what they were. None changes nothing. Entering neither
    waits for other streams nor leaves work behind that others wait for: order streams with
    ``wait_stream`` or events.
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
    """Return a context manager in which operators go to ``stream``, see :class:`StreamContext`."""
    return StreamContext(stream)


def is_current_stream_capturing() -> bool:
    """Return whether what is enqueued on the current stream is recorded in a graph and not run."""
    return _C.is_current_stream_capturing()


def _wrap(value: torch.Stream) -> Stream:
    return Stream(
        stream_id=value.stream_id,
        device_index=value.device_index,
        device_type=value.device_type,
    )
