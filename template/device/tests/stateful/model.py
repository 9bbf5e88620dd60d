"""What error.h says about failures, on paper: which call throws what, and what is acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LOST = "device_lost"


@dataclass
class Fault:
    """A fault that was asked for."""

    nth: int
    code: str
    later: bool
    overlooked: int


@dataclass(eq=False)
class Failure:
    """Work that has failed, and where it was enqueued."""

    code: str
    operation: str
    device: int
    stream: Any
    overlooked: int

    @property
    def is_found(self) -> bool:
        """Whether a query sees it."""
        return self.overlooked == 0

    @property
    def origin(self) -> tuple[str, str, int, Any]:
        """What the error says."""
        return (self.code, self.operation, self.device, self.stream)


@dataclass(eq=False)
class Stream:
    """A stream, or one point of its order."""

    handle: Any
    device: int
    failures: list[Failure] = field(default_factory=list)


@dataclass(eq=False)
class Event:
    """An event; `mark` is null until it is recorded."""

    handle: Any
    device: int
    mark: Stream | None = None


class Model:
    """The failures of all devices."""

    def __init__(self) -> None:
        self.armed: dict[str, Fault] = {}
        self.lost: dict[int, Failure] = {}

    def strike(self, call: str, has_work: bool) -> Fault | None:
        """The fault that the next call of a kind suffers."""
        fault = self.armed.get(call)
        if fault is None or (fault.later and not has_work):
            return None
        fault.nth -= 1
        return self.armed.pop(call) if fault.nth == 0 else None

    def lose(self, failure: Failure) -> None:
        """A failure is known, and may be the loss of its device."""
        if failure.code == LOST:
            self.lost.setdefault(failure.device, failure)

    def record(self, event: Event, stream: Stream) -> None:
        """The event stands for the stream's work so far."""
        event.mark = Stream(stream.handle, stream.device, list(stream.failures))

    def wait(self, stream: Stream, event: Event) -> None:
        """What failed before the event has failed for the stream."""
        mark = event.mark
        if mark is None or mark.handle == stream.handle:
            return
        lost = self.lost.get(mark.device)
        for failure in mark.failures if lost is None else [lost]:
            if failure.code == LOST and (lost is not None or mark.device != stream.device):
                hidden = 0 if lost is not None else failure.overlooked
                stream.failures.append(Failure(*failure.origin, hidden))
            elif failure not in stream.failures:
                stream.failures.append(failure)

    def query(self, point: Stream) -> bool:
        """Whether a query of finished work says that it failed."""
        found = [f for f in point.failures if f.is_found]
        if point.device in self.lost:
            return True
        for failure in found:
            self.lose(failure)
        return bool(found)

    def synchronize(self, point: Stream) -> Failure | None:
        """What a synchronisation throws."""
        if point.device in self.lost:
            return self.lost[point.device]
        found = [f for f in point.failures if f.is_found]
        # One failure may lie on the way twice, as it is shared.
        for failure in point.failures:
            if failure.overlooked > 0:
                failure.overlooked -= 1
        for failure in found:
            self.lose(failure)
        return found[0] if found else None

    def acknowledge(self, streams: list[Stream], events: list[Event]) -> None:
        """What has been found of the streams' failures is forgotten, and so of events there."""
        marks = [event.mark for event in events if event.mark is not None]
        for stream in streams:
            for point in (stream, *(mark for mark in marks if mark.handle == stream.handle)):
                point.failures = [f for f in point.failures if not f.is_found]
