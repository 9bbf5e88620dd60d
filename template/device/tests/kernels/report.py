"""The support matrix: what the run found the device to do, beside what its support.toml says."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import device_library
import pytest
from kernels.gaps import ALL, FULL, QUICK, gaps, rewritten, unmet
from kernels.support import Case, Outcome, Support

# Columns of the matrix, by the names that fit there.
DTYPES = {
    **{"bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32"},
    **{"int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32"},
    **{"float64": "f64", "complex64": "c64", "complex128": "c128"},
}
# Those that are mostly held: a table of their own.
HELD = {
    **{"uint16": "u16", "uint32": "u32", "uint64": "u64", "complex32": "c32"},
    **{"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e4m3fnuz": "e4m3z"},
    **{"float8_e5m2fnuz": "e5m2z", "float8_e8m0fnu": "e8m0", "float4_e2m1fn_x2": "f4x2"},
    **{"int4x2": "i4x2"},
}


def matrix(outcomes: Iterable[Outcome]) -> list[str]:
    """Lines of a table of families and element types, and of one of the types that few take."""
    cells: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        cells[outcome.case.family][outcome.case.dtype].append(outcome)
    lines = _table(cells, DTYPES, 5)
    held = {family: row for family, row in cells.items() if any(dtype in HELD for dtype in row)}
    return lines + (["", *_table(held, HELD, 6)] if held else [])


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
    declined = sum(outcome.answer is not None for outcome in outcomes)
    return "no" if declined == len(outcomes) else "part" if declined else "yes"


def as_json(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """The same, operation by operation: family, element type, operation, and how many cases."""
    families: dict[str, Any] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case.fields):
        case = outcome.case
        entry = (
            families.setdefault(case.family, {})
            .setdefault(case.dtype, {})
            .setdefault(
                case.op, {"supported": 0, "declined": 0, "failed": 0, "ulp": 0.0, "reasons": []}
            )
        )
        state = "declined" if outcome.answer else "failed" if outcome.failed else "supported"
        entry[state] += 1
        entry["ulp"] = max(entry["ulp"], round(outcome.ulp, 2))
        if outcome.answer and outcome.answer not in entry["reasons"]:
            entry["reasons"].append(outcome.answer)
    return families


def capabilities(results: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lines of a table of what the runtime can, from its tests: file, outcome, reason of a skip."""
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
    """Collects the outcomes of a run, in whichever process its tests ran, and reports at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.outcomes: dict[tuple[Case, str | None], Outcome] = {}
        self.failed: set[str] = set()
        self.runtime: dict[str, tuple[str, str, str]] = {}
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the cases of a test that has ended."""
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
        *case, answer, ulp = fields
        outcome = Outcome(Case(*case), answer, ulp, failed and answer is None)
        known = self.outcomes.setdefault((outcome.case, answer), outcome)
        known.ulp = max(known.ulp, ulp)
        known.failed |= outcome.failed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Checks or rewrites support.toml, and writes the JSON."""
        if not self.outcomes or hasattr(self.config, "workerinput"):
            return
        path = self.config.getoption("--support-json")
        if path:
            Path(path).write_text(json.dumps(self._summary(), indent=1) + "\n", "utf-8")
            self.lines.append(f"written to {path}")
        if not self._whole_files():
            if self.config.getoption("--update-support"):
                self.lines.append(
                    "support.toml is as it was: --update-support takes whole files, "
                    "without -k, --deselect, --lf or ::, and of -m only full"
                )
            return
        support, tier = Support.load(), self._tier()
        if self.config.getoption("--update-support"):
            self._update(support, tier)
        elif exitstatus == pytest.ExitCode.OK:
            stale = unmet(support, [case for case, _ in self.outcomes], tier)
            if stale:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            self.lines += [f"support.toml: no case is like {entry}" for entry in stale]

    def _update(self, support: Support, tier: str) -> None:
        path = device_library.SUPPORT
        text = path.read_text() if path.exists() else ""
        entries, unclear = gaps(support, self.outcomes.values(), tier)
        path.write_text(rewritten(text, entries))
        self.lines.append(f"{path} declares {len(entries)} gaps now")
        self.lines += [f"declined in some of its cases only: {case}" for case in unclear]

    def _tier(self) -> str:
        return str(self.config.getoption("-m") or "")

    def _whole_files(self) -> bool:
        """Whether all cases of the families that were run have been run."""
        chosen = [self.config.getoption(name, None) for name in ("-k", "--deselect", "--lf")]
        parts = [argument for argument in self.config.args if "::" in argument]
        return not any(chosen) and not parts and self._tier() in (QUICK, FULL, ALL)

    def _summary(self) -> dict[str, Any]:
        api = device_library.load()
        properties = api.properties(0)
        names = [name for name in dir(properties) if not name.startswith("_")]
        return {
            "device": device_library.DEVICE,
            "interface_version": api.INTERFACE_VERSION,
            "properties": {name: getattr(properties, name) for name in names},
            "families": as_json(self.outcomes.values()),
        }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints the matrix."""
        if not self.outcomes and not self.runtime:
            return
        terminalreporter.section(f"what {device_library.DEVICE} does")
        for line in capabilities(self.runtime.values()):
            terminalreporter.line(line)
        if not self.outcomes:
            return
        if self.runtime:
            terminalreporter.line("")
        declined = sum(outcome.answer is not None for outcome in self.outcomes.values())
        count = f"{len(self.outcomes)} kinds of cases, {declined} of them declined"
        for line in [*matrix(self.outcomes.values()), "", count, *self.lines]:
            terminalreporter.line(line)
