"""The results of a run: two tables at its end, and the lines of support.toml."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import device_library
import pytest
from kernels.gaps import rewritten
from kernels.support import Case, Outcome, Support

# Columns of the table, by short names.
DTYPES = {
    **{"bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32"},
    **{"int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32"},
    **{"float64": "f64", "complex64": "c64", "complex128": "c128"},
}
# Types that are mostly storage-only, in their own table.
STORAGE_ONLY = {
    **{"uint16": "u16", "uint32": "u32", "uint64": "u64", "complex32": "c32"},
    **{"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e4m3fnuz": "e4m3z"},
    **{"float8_e5m2fnuz": "e5m2z", "float8_e8m0fnu": "e8m0", "float4_e2m1fn_x2": "f4x2"},
    **{"int4x2": "i4x2"},
}


def matrix(outcomes: Iterable[Outcome]) -> list[str]:
    """Lines of a table of families and element types, and of one of rarely supported types."""
    cells: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        cells[outcome.case.family][outcome.case.dtype].append(outcome)
    lines = _table(cells, DTYPES, 5)
    rare = {family: row for family, row in cells.items() if row.keys() & STORAGE_ONLY}
    return lines + (["", *_table(rare, STORAGE_ONLY, 6)] if rare else [])


def _table(
    cells: dict[str, dict[str, list[Outcome]]], columns: dict[str, str], width: int
) -> list[str]:
    lines = [f"{'':<20}" + "".join(f"{name:>{width}}" for name in columns.values())]
    for family, row in sorted(cells.items()):
        words = [_word(row[dtype]) if dtype in row else "" for dtype in columns]
        lines.append((f"{family:<20}" + "".join(f"{word:>{width}}" for word in words)).rstrip())
    return lines


def _word(outcomes: list[Outcome]) -> str:
    if any(outcome.failed for outcome in outcomes):
        return "FAIL"
    unsupported = sum(outcome.answer is not None for outcome in outcomes)
    return "no" if unsupported == len(outcomes) else "part" if unsupported else "yes"


def capabilities(results: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lines of a table of the runtime's tests: file, outcome, reason of a skip."""
    files: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, outcome, reason in results:
        files[file.removeprefix("test_").replace("_", " ")].append((outcome, reason))
    lines = []
    for name, seen in sorted(files.items()):
        outcomes = [outcome for outcome, _ in seen]
        skips = Counter(reason for outcome, reason in seen if outcome == "skipped")
        word = "FAIL" if "failed" in outcomes else "yes" if "passed" in outcomes else "no"
        why = "; ".join(f"{reason} ({count})" for reason, count in skips.items())
        passed = f"{outcomes.count('passed')} of {len(outcomes)}"
        lines.append(f"{name:<20}{word:>5}  {passed:<12}{why and f'not tried: {why}'}".rstrip())
    return lines


class Report:
    """Collects the outcomes of a run from all test processes, and reports at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.outcomes: dict[tuple[Case, str | None], Outcome] = {}
        self.failed: set[str] = set()
        self.runtime: dict[str, tuple[str, str, str]] = {}
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds the cases of a test that has ended."""
        if report.failed:
            self.failed.add(report.nodeid)
        path = Path(report.nodeid.partition("::")[0])
        if path.parent.name == "runtime" and (report.when == "call" or not report.passed):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            told = (path.stem, report.outcome, reason.removeprefix("Skipped: "))
            self.runtime[report.nodeid] = told
        if report.when != "teardown":
            return
        for name, value in report.user_properties:
            if name == "device case":
                self._add(value, report.nodeid in self.failed)

    def _add(self, fields: Any, failed: bool) -> None:
        *case, answer = fields
        outcome = Outcome(Case(*case), answer, failed and answer is None)
        known = self.outcomes.setdefault((outcome.case, answer), outcome)
        known.failed |= outcome.failed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if not self.config.getoption("--write-support") or hasattr(self.config, "workerinput"):
            return
        path = device_library.SUPPORT
        text = path.read_text("utf-8") if path.exists() else ""
        text, unclear = rewritten(text, Support.load(), self.outcomes.values())
        path.write_text(text, "utf-8")
        self.lines = [f"{path} has been updated"]
        self.lines += [f"unsupported only at times: {case}" for case in unclear]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.outcomes and not self.runtime:
            return
        terminalreporter.section(f"what {device_library.DEVICE} does")
        for line in capabilities(self.runtime.values()):
            terminalreporter.line(line)
        if not self.outcomes:
            return
        if self.runtime:
            terminalreporter.line("")
        unsupported = sum(outcome.answer is not None for outcome in self.outcomes.values())
        count = f"{len(self.outcomes)} kinds of cases, {unsupported} of them unsupported"
        for line in [*matrix(self.outcomes.values()), "", count, *self.lines]:
            terminalreporter.line(line)
