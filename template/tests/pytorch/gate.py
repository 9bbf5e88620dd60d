"""The verdicts of a run, the problems that close the gate, and L3's rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pytorch.expectations import Expectations
from pytorch.runner import FileResult

VERDICTS = ("pass", "fail", "crash", "timeout", "xfail", "stale", "skip", "expected")
RAN = ("pass", "fail", "crash", "timeout", "xfail", "stale")
"""The verdicts that L3's rule counts. ``stale``: passes although it is declared to fail."""
FAILED = ("fail", "crash", "timeout")
L3 = 0.9
"""More than this share of the tests that run must pass."""


def share(counts: Counter[str]) -> float:
    """Return the share of the tests that passed among those that ran; 0 if none ran."""
    ran = sum(counts[verdict] for verdict in RAN)
    return (counts["pass"] + counts["stale"]) / ran if ran else 0.0


def judged(result: FileResult, known: Expectations) -> dict[str, dict[str, Any]]:
    """Return the tests of a file with their verdicts and reasons."""
    cells: dict[str, dict[str, Any]] = {}
    for name, test in result.tests.items():
        for table in ("skip", "tolerance", "bypass"):
            list(known.of(test, table))  # marks the entry as matched
        failures = list(known.of(test, "xfail"))
        outcome = result.results.get(name)
        if outcome is None:
            continue
        cell: dict[str, Any] = {"verdict": outcome.outcome, "seconds": outcome.seconds}
        if outcome.reason:
            cell["reason"] = outcome.reason
        if failures and outcome.outcome in FAILED:
            cell |= {"verdict": "xfail", "declared": failures[0].reason}
        elif failures and outcome.outcome == "pass":
            cell |= {"verdict": "stale", "declared": failures[0].place}
        cells[name] = cell
    return cells


def document(
    results: Iterable[FileResult],
    known: Expectations,
    every_file: list[str],
    whole: bool,
) -> dict[str, Any]:
    """Return the results of a run in the form in which they are written.

    Args:
        results: Of the files that were run or left out.
        known: The declarations.
        every_file: All files.
        whole: Whether all tests were selected: only then an entry can be stale.
    """
    files: dict[str, Any] = {}
    complete: set[str] = set()
    for result in sorted(results, key=lambda item: item.file):
        cells = judged(result, known)
        counts = Counter(cell["verdict"] for cell in cells.values())
        files[result.file] = {
            "counts": {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]},
            "seconds": result.seconds,
            "broken": result.broken,
            "left_out": result.left_out,
            "tests": cells,
        }
        if not result.broken and not result.left_out:
            complete.add(result.file)
    totals: Counter[str] = Counter()
    for row in files.values():
        totals.update(row["counts"])
    return {
        "files": files,
        "totals": dict(totals),
        "share": share(totals),
        "whole": whole,
        "stale": known.stale(every_file, complete) if whole else [],
    }


def problems(told: dict[str, Any], rule: bool) -> list[str]:
    """Return why the gate is closed, one sentence each; an empty list if it is open.

    Args:
        told: The document.
        rule: Whether L3's rule is part of the gate.
    """
    found = []
    for file, row in told["files"].items():
        if row["broken"]:
            found.append(f"{file}: {row['broken']}")
        for name, cell in row["tests"].items():
            if cell["verdict"] in FAILED:
                found.append(f"{file}::{name}: {cell['verdict']}: {cell.get('reason', '')}")
            elif cell["verdict"] == "stale":
                found.append(f"{file}::{name}: passes, but {cell['declared']} says that it fails")
    found += told["stale"]
    if rule and told["share"] <= L3:
        found.append(
            f"{told['share']:.1%} of the tests that ran have passed, and L3 asks for more than {L3:.0%}"
        )
    return found
