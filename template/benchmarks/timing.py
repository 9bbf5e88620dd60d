"""Times one statement on two devices in turns, so that the machine's load is the same for both."""

from __future__ import annotations

import timeit
from dataclasses import dataclass
from statistics import median

import torch
from names import DEVICE

MICROSECONDS = 1e6


@dataclass(frozen=True)
class Case:
    """A statement to time. In it, ``device`` is its device, and ``sync()`` waits for that device.

    Args:
        name: its name in the table.
        statement: the timed code.
        setup: code that defines the names that ``statement`` uses.
        calls: calls per burst. The device is idle when a burst starts, and bursts are short enough
            for its queue, so host time is not mistaken for waiting.
        rounds: bursts; the figures are medians over them.
        limit: the maximum time of the device, as a multiple of the CPU's time.
        excess_limit: the maximum time above the CPU's time, in microseconds.
        before: untimed code before each burst, such as enqueueing work.
    """

    name: str
    statement: str
    setup: str = "pass"
    calls: int = 100
    rounds: int = 300
    limit: float | None = None
    excess_limit: float | None = None
    before: str = "pass"


@dataclass(frozen=True)
class Figure:
    """Median times of one call in microseconds."""

    name: str
    cpu: float
    device: float
    limit: float | None = None
    excess_limit: float | None = None

    @property
    def ratio(self) -> float:
        return self.device / self.cpu

    @property
    def excess(self) -> float:
        return self.device - self.cpu

    @property
    def within(self) -> bool | None:
        """Whether the figure keeps its limit, or None without one."""
        if self.limit is not None:
            return self.ratio <= self.limit
        if self.excess_limit is not None:
            return self.excess <= self.excess_limit
        return None


def measure(case: Case) -> Figure:
    """Time ``case`` on the CPU and on the device, in alternating bursts.

    A call before each burst wakes the device and loads its data into the caches.
    """
    synchronize = torch.get_device_module(DEVICE).synchronize
    timers: dict[str, timeit.Timer] = {}
    before: dict[str, timeit.Timer] = {}
    for device in ("cpu", DEVICE):
        names: dict[str, object] = {
            "torch": torch,
            "device": device,
            "sync": synchronize if device == DEVICE else lambda: None,
        }
        exec(case.setup, names)  # The cases are this package's own.
        timers[device] = timeit.Timer(case.statement, globals=names)
        before[device] = timeit.Timer(case.before, globals=names)
    times: dict[str, list[float]] = {device: [] for device in timers}
    for number in range(case.rounds + case.rounds // 10):
        for device, timer in timers.items():
            timer.timeit(1)
            synchronize()
            before[device].timeit(1)
            seconds = timer.timeit(case.calls) / case.calls
            if number >= case.rounds // 10:  # The first ones warm up.
                times[device].append(seconds * MICROSECONDS)
    return Figure(
        case.name,
        median(times["cpu"]),
        median(times[DEVICE]),
        limit=case.limit,
        excess_limit=case.excess_limit,
    )
