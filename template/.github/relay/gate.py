"""The gate: runs the tests of each level against a commit of PyTorch, and counts the results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

RESULTS = Path("build/relay/results.json")
PYTORCH = Path("pytorch-tests.json")
"""The report of ``tests/pytorch``."""
COUNTS = ("passed", "failed", "skipped")
LARGEST = 1 << 20
"""Maximum size of a results file, in bytes."""

QUICKSTART = ("examples/quickstart.py",)
CORE = ("-m", "pytest", "-n", "auto", "tests/core")
BACKEND = ("-m", "pytest", "-n", "auto", "device/tests", "tests")
SUITES = ("tests/pytorch",)
STEPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "L1": (QUICKSTART, CORE),
    "L2": (QUICKSTART, BACKEND),
    "L3": (QUICKSTART, BACKEND, SUITES),
    "L4": (QUICKSTART, BACKEND, SUITES),
}
"""Arguments of Python for each level. All run, also after a failure."""


def run(level: str) -> bool:
    """Run the gate of a level in the project's root, write ``RESULTS``, return success."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    total, passed = dict.fromkeys(COUNTS, 0), True
    for step in STEPS[level]:
        report = RESULTS.with_name("tests.xml")
        report.unlink(missing_ok=True)
        PYTORCH.unlink(missing_ok=True)
        more = [f"--junit-xml={report}"] if "pytest" in step else []
        print("+ python", *step, flush=True)
        good = subprocess.run([sys.executable, *step, *more], check=False).returncode == 0
        counts = _tests(report) or _suites(PYTORCH) or {"passed": good, "failed": not good}
        for name in COUNTS:
            total[name] += counts.get(name, 0)
        passed &= good
    RESULTS.write_text(json.dumps(total), "utf-8")
    return passed


def results(path: Path = RESULTS) -> dict[str, int] | None:
    """Return how many tests passed, failed and were skipped, or None for an invalid file.

    The file is from a job that has run code of a pull request, so it may have any content.
    """
    if not path.is_file() or path.stat().st_size > LARGEST:
        return None
    try:
        return _counts(json.loads(path.read_bytes()))
    except (ValueError, RecursionError):
        return None


def _counts(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    counts = {name: value.get(name) for name in COUNTS}
    sane = all(type(count) is int and 0 <= count < 10**9 for count in counts.values())
    return counts if sane else None


def _tests(path: Path) -> dict[str, int] | None:
    """Return the counts of pytest's report."""
    if not path.is_file():
        return None
    try:
        suites = ElementTree.parse(path).getroot().iter("testsuite")
    except ElementTree.ParseError:
        return None
    numbers = [
        {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
        for suite in suites
    ]
    failed = sum(each["failures"] + each["errors"] for each in numbers)
    skipped = sum(each["skipped"] for each in numbers)
    return {
        "passed": sum(each["tests"] for each in numbers) - failed - skipped,
        "failed": failed,
        "skipped": skipped,
    }


def _suites(path: Path) -> dict[str, int] | None:
    """Return the counts of the report on PyTorch's own tests."""
    if not path.is_file():
        return None
    totals: dict[str, int] = json.loads(path.read_text("utf-8"))["totals"]
    verdicts = {
        "passed": ("pass",),
        "failed": ("fail", "crash", "timeout", "stale"),
        "skipped": ("skip", "xfail", "expected"),
    }
    return {name: sum(totals.get(each, 0) for each in those) for name, those in verdicts.items()}
