"""The support matrix: what the run found the device to do, beside what its support.toml says."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import device_library
import pytest
from kernels.support import PATTERNS, Case, Entry, Globs, Outcome, Support

# Columns of the matrix, by the names that fit there.
DTYPES = {
    **{"bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32"},
    **{"int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32"},
    **{"float64": "f64", "complex64": "c64", "complex128": "c128"},
}


def matrix(outcomes: Iterable[Outcome]) -> list[str]:
    """Lines of a table of families and element types."""
    cells: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        cells[outcome.case.family][outcome.case.dtype].append(outcome)
    lines = [f"{'':<20}" + "".join(f"{name:>5}" for name in DTYPES.values())]
    for family, row in sorted(cells.items()):
        words = [_word(row[dtype]) if dtype in row else "" for dtype in DTYPES]
        lines.append((f"{family:<20}" + "".join(f"{word:>5}" for word in words)).rstrip())
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


# The values of -m that take every case of a file: without the slow ones, only those, all of them.
QUICK, FULL, ALL = "", "full", "full or not full"
ANY: Globs = ("*",)


def unmet(support: Support, cases: Collection[Case], tier: str) -> list[Entry]:
    """The entries about the families of these cases that no case matches, as far as one can tell.

    What is said of sizes may be about the slow cases, everything else is about quick ones too.
    """
    families = {case.family for case in cases}
    return [
        entry
        for entry in (*support.unsupported, *support.expected_failures, *support.ulp)
        if (tier == ALL or (tier == QUICK and entry.sizes == ANY))
        and any(map(entry.about, families))
        and not any(entry.matches(case) for case in cases)
    ]


def gaps(
    support: Support, outcomes: Collection[Outcome], tier: str
) -> tuple[list[Entry], set[Case]]:
    """What `unsupported` should say: its entries that are right, and as few others as do.

    And the cases that no entry can be about, because the device declines only some of them.
    """
    declined = {outcome.case: outcome.answer or "" for outcome in outcomes if outcome.answer}
    working = [outcome.case for outcome in outcomes if not outcome.answer]
    stale = unmet(support, [*declined, *working], tier)
    entries = [
        entry
        for entry in support.unsupported
        if entry not in stale and not any(entry.matches(case) for case in working)
    ]
    left = {case for case in declined if not any(entry.matches(case) for entry in entries)}
    for family in sorted({case.family for case in left}):
        missing = {case for case in left if case.family == family}
        for entry, covered in _covering(missing, [x for x in working if x.family == family]):
            reasons = {_reason(support, case, declined[case]) for case in covered}
            entries.append(replace(entry, reason="; ".join(sorted(reasons))))
            left -= covered
    return entries, left


def _covering(
    missing: Iterable[Case], working: Collection[Case]
) -> Iterator[tuple[Entry, set[Case]]]:
    """Entries about these cases of a family and no working one, general ones first, and whose."""
    rest = set(missing)
    free = PATTERNS[1:]
    for count in range(len(free) + 1):
        for given in itertools.combinations(free, count):
            for case in sorted(rest, key=str):
                entry = _about(case, given)
                if case in rest and not any(entry.matches(other) for other in working):
                    covered = {other for other in rest if entry.matches(other)}
                    rest -= covered
                    yield entry, covered


def _about(case: Case, given: Collection[str]) -> Entry:
    """The entry about all cases of the family that have the case's values of these fields."""
    names = {"family", *given}
    globs = {name: (getattr(case, name),) if name in names else ANY for name in PATTERNS}
    return Entry(**globs, reason="")


def _reason(support: Support, case: Case, answer: str) -> str:
    """What the file said about a case so far, or else what the device says."""
    entry = support.declared(case)
    return entry.reason if entry else answer


def rewritten(text: str, entries: Iterable[Entry]) -> str:
    """The text of a support.toml with these `unsupported` entries, at its end, instead of its own.

    An entry ends at an empty line. Everything else stays.
    """
    kept = re.sub(r"^\[\[unsupported\]\]\n([^\s\[].*\n)*\n*", "", text, flags=re.MULTILINE)
    return "\n\n".join([*filter(None, [kept.rstrip("\n")]), *map(_paragraph, entries)]) + "\n"


def _paragraph(entry: Entry) -> str:
    patterns = zip(PATTERNS, entry.patterns, strict=True)
    keys = [f"{name} = {_quoted(globs)}" for name, globs in patterns if globs != ANY]
    return "\n".join(["[[unsupported]]", *keys, f"reason = {_quoted(entry.reason)}"])


def _quoted(value: str | Globs) -> str:
    """A string, or several, as TOML writes them, which is as JSON does."""
    one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    return json.dumps(one, ensure_ascii=False)


class Report:
    """Collects the outcomes of a run, in whichever process its tests ran, and reports at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.outcomes: dict[tuple[Case, str | None], Outcome] = {}
        self.failed: set[str] = set()
        self.lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the cases of a test that has ended."""
        if report.failed:
            self.failed.add(report.nodeid)
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
            Path(path).write_text(json.dumps(self._summary(), indent=1) + "\n")
            self.lines.append(f"written to {path}")
        if not self._whole_files():
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
        if not self.outcomes:
            return
        terminalreporter.section(f"what {device_library.DEVICE} does")
        declined = sum(outcome.answer is not None for outcome in self.outcomes.values())
        count = f"{len(self.outcomes)} kinds of cases, {declined} of them declined"
        for line in [*matrix(self.outcomes.values()), "", count, *self.lines]:
            terminalreporter.line(line)
