"""Profiles, and their Chrome traces."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import backend
from support import has_function, needs, since
from torch.profiler import ProfilerActivity, profile

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
DEVICE_KINDS = ("kernel", "gpu_memcpy", "gpu_memset")

RECORDS = [
    needs(torch.float32),
    since((2, 12), "takes records of devices"),
    pytest.mark.skipif(
        not has_function("profiling", "take_activities"),
        reason="the device keeps no records of its work",
    ),
]
"""The marks of tests of the devices' work."""

Event = dict[str, Any]


@dataclass(frozen=True)
class Trace:
    """The events of a Chrome trace."""

    events: list[Event]

    def of_kind(self, *kinds: str) -> list[Event]:
        """Return the events of these categories, the earliest first."""
        found = [event for event in self.events if event.get("cat") in kinds]
        return sorted(found, key=lambda event: float(event["ts"]))

    def work(self) -> list[Event]:
        """Return the events of the devices' work."""
        return self.of_kind(*DEVICE_KINDS)

    def operator_of(self, event: Event) -> str | None:
        """Return the name of the operator that an event belongs to."""
        number = event["args"].get("External id")
        (name,) = [
            op["name"] for op in self.of_kind("cpu_op") if op["args"]["External id"] == number
        ] or [None]
        return name

    def labels(self, what: str) -> dict[tuple[int, int], str]:
        """Return the names of processes or threads by process and thread."""
        return {
            (event["pid"], event["tid"]): event["args"]["name"]
            for event in self.events
            if event["name"] == what
        }


def trace_of(profiled: Any) -> Trace:
    """Return the exported trace of a finished profile."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(file))
        return Trace(json.loads(file.read_text())["traceEvents"])


def record(function: Callable[[], object], **options: Any) -> Any:
    """Return a profile of a call of ``function``, including its work on the devices."""
    torch.accelerator.synchronize()
    with profile(activities=BOTH, **options) as profiled:
        function()
        for index in range(backend.device_count()):
            backend.synchronize(index)
    return profiled


def end(event: Event) -> float:
    """Return when an event ended, in microseconds."""
    return float(event["ts"]) + float(event["dur"])


def encloses(outer: Event, inner: Event) -> bool:
    """Return whether one event encloses another; times are rounded to ns."""
    rounding = 0.002
    return bool(outer["ts"] <= inner["ts"] + rounding and end(inner) <= end(outer) + rounding)
