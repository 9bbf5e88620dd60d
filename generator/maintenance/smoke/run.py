"""A smoke run: chooses the rows, tries them in parallel, and reduces those that fail."""

from __future__ import annotations

import os
import queue
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from maintenance.smoke import STRENGTHS
from maintenance.smoke.answers import Row, Space, features_of
from maintenance.smoke.covering import covering_array
from maintenance.smoke.report import Result
from maintenance.smoke.shrink import shrink
from maintenance.smoke.trial import Extent, TrialResult, try_answers
from torchsmith.errors import InputError

Trial = Callable[[Row, Path, Extent], TrialResult]


def choose(space: Space, strength: str, shard: str = "1/1") -> list[Row]:
    """Return the rows of a run, or of one shard; rows that compile the same code are neighbours."""
    rows = covering_array(space.axes, STRENGTHS[strength], space.legal)
    rows.sort(key=lambda row: (row["identity"] != "plain", row["dtypes"]))
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise InputError(f"'{shard}' is no shard: write for instance 1/4, the first of four")
    return rows[int(number) - 1 :: int(count)]


@dataclass
class Run:
    """Rows and their results, which change while they are being tried."""

    space: Space
    rows: list[Row]
    extent: Extent
    folder: Path
    jobs: int = 1
    stand_in: Trial | None = None
    changed: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.results = [Result(self.space.label(row), self.space.command(row)) for row in self.rows]

    def execute(self) -> list[Result]:
        """Try every row, then look for the smallest failing set of those that failed."""
        # Several builds share the processors.
        os.environ.setdefault(
            "CMAKE_BUILD_PARALLEL_LEVEL", str(max(1, (os.cpu_count() or 1) // self.jobs))
        )
        slots: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(self.jobs):
            slots.put(self.folder / f"slot{number}")

        def one(row: Row, result: Result) -> None:
            slot = slots.get()
            try:
                self._fill_in(row, result, slot)
            finally:
                slots.put(slot)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, self.rows, self.results))
        passed = [
            row
            for row, result in zip(self.rows, self.results, strict=True)
            if result.state == "passed"
        ]
        # With one value for each axis, the run repeats a failure that is already reduced.
        if any(len(values) > 1 for values in self.space.axes.values()):
            for row, result in zip(self.rows, self.results, strict=True):
                if result.failed:
                    self._explain(row, result, passed)
        return self.results

    def _fill_in(self, row: Row, result: Result, slot: Path) -> None:
        tried = self._try(row, slot, lambda stage: self._note(result, stage))
        result.seconds, result.log = tried.seconds, tried.log
        self._note(result, tried.state)
        shutil.rmtree(slot, ignore_errors=True)

    def _explain(self, row: Row, result: Result, passed: list[Row]) -> None:
        result.searching = True
        self.changed()

        def fails_alike(candidate: Row) -> bool:
            tried = self._try(candidate, self.folder / "shrink", lambda _: None)
            return tried.state == result.state

        smallest = shrink(self.space, row, fails_alike, passed)
        result.smallest = tuple(sorted(features_of(smallest)))
        result.repeat = self.space.command(smallest)
        result.searching = False
        self.changed()

    def _try(self, row: Row, slot: Path, on_stage: Callable[[str], None]) -> TrialResult:
        extent = replace(self.extent, on_stage=on_stage)
        if self.stand_in is not None:
            return self.stand_in(row, slot, extent)
        return try_answers(self.space.answers(row), slot, extent)

    def _note(self, result: Result, state: str) -> None:
        result.state = state
        self.changed()
