"""A model of failures by the rules of error.h: the errors of each call, and acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LOST = "device_lost"


@dataclass
class Fault:
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
        """Whether a query reports it."""
        return self.overlooked == 0

    @property
    def origin(self) -> tuple[str, str, int, Any]:
        """The origin in the error."""
        return (self.code, self.operation, self.device, self.stream)


@dataclass(eq=False)
class Stream:
    """A stream, or a position in it."""

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
        """The fault of the next call of a kind."""
        fault = self.armed.get(call)
        if fault is None or (fault.later and not has_work):
            return None
        fault.nth -= 1
        return self.armed.pop(call) if fault.nth == 0 else None

    def lose(self, failure: Failure) -> None:
        if failure.code == LOST:
            self.lost.setdefault(failure.device, failure)

    def record(self, event: Event, stream: Stream) -> None:
        event.mark = Stream(stream.handle, stream.device, list(stream.failures))

    def wait(self, stream: Stream, event: Event) -> None:
        """The stream inherits failures from before the event."""
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
        found = [f for f in point.failures if f.is_found]
        if point.device in self.lost:
            return True
        for failure in found:
            self.lose(failure)
        return bool(found)

    def synchronize(self, point: Stream) -> Failure | None:
        if point.device in self.lost:
            return self.lost[point.device]
        found = [f for f in point.failures if f.is_found]
        # The same failure may be found twice, because streams share it.
        for failure in point.failures:
            if failure.overlooked > 0:
                failure.overlooked -= 1
        for failure in found:
            self.lose(failure)
        return found[0] if found else None

    def acknowledge(self, streams: list[Stream], events: list[Event]) -> None:
        marks = [event.mark for event in events if event.mark is not None]
        for stream in streams:
            for point in (stream, *(mark for mark in marks if mark.handle == stream.handle)):
                point.failures = [f for f in point.failures if not f.is_found]
