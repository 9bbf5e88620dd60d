"""Runs one of the three sets of tests: ``python -m maintenance.gate check|test|test-all``.

A set prints what it does, fails if a tool is missing, and ends with a table of its folders. A
skipped test fails it unless the reason is declared here.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from torchsmith.template import TEMPLATE

CHECKED = ("tests/rules", "tests/commands", "tests/workflows")
DECLARED_SKIPS = (r"there is no aarch64-linux-gnu-g\+\+",)
"""Allowed reasons for a skipped test, as regular expressions."""


@dataclass(frozen=True)
class Set:
    """Some of the tests: what they do, which pytest runs, and the tools that they need."""

    what: str
    arguments: tuple[str, ...]
    tools: tuple[tuple[str, ...], ...] = (("git",), ("make",))
    needs_torch: bool = False

    def missing(self) -> Iterator[str]:
        """Yield a sentence for each missing tool."""
        for names in self.tools:
            if not any(map(shutil.which, names)):
                yield f"there is no {names[0]}: install it, for example with apt-get"
        if self.needs_torch and importlib.util.find_spec("torch") is None:
            yield "there is no PyTorch: 'make venv' installs it"
        elif shutil.which("git") and not (TEMPLATE / ".git").exists():
            yield f"{TEMPLATE} is no git checkout, and tests ask git for its files: clone it"


BUILDING = (
    *(("git",), ("make",), ("g++", "c++"), ("cmake",), ("ninja",)),
    *(("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)),
)
SETS = {
    "check": Set(
        "lint, types, rules and the command, without PyTorch: about 5 minutes on 2 cores",
        ("-m", "not nightly and not torch", *CHECKED),
    ),
    "test": Set(
        "'make check', a build of every feature, and its tests: 20 minutes on 2 cores",
        ("-m", "not nightly", "tests"),
        BUILDING,
        needs_torch=True,
    ),
    "test-all": Set(
        "every test, with builds of other projects: about 6 hours on 2 cores",
        ("tests",),
        BUILDING,
        needs_torch=True,
    ),
}


@dataclass
class Folder:
    """The outcome of the tests of a folder."""

    tests: int = 0
    failed: int = 0
    skips: list[str] = field(default_factory=list)
    seconds: float = 0

    @property
    def undeclared(self) -> list[str]:
        """The skips whose reason is not declared."""
        return [skip for skip in self.skips if not re.search("|".join(DECLARED_SKIPS), skip)]


def read(report: Path) -> dict[str, Folder]:
    """Return the folders of a report that pytest has written."""
    folders: dict[str, Folder] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        folder = folders.setdefault("/".join(case.get("classname", "").split(".")[:2]), Folder())
        folder.tests += 1
        folder.seconds += float(case.get("time", 0))
        folder.failed += case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped")
        if skipped is not None and skipped.get("type") == "pytest.skip":
            folder.skips.append(f"{case.get('name')}: {skipped.get('message')}")
    return folders


def show(name: str, folders: dict[str, Folder]) -> None:
    """Print a table, the skips that are not declared, and the sums in pytest's words."""
    table = Table("folder", title=f"make {name}")
    for heading in ("tests", "failed", "skipped", "seconds"):
        table.add_column(heading, justify="right")
    for path, it in sorted(folders.items()):
        table.add_row(
            path, f"{it.tests:,}", str(it.failed), str(len(it.skips)), f"{it.seconds:.0f}"
        )
    console = Console()
    console.print(table)
    for skip in (skip for it in folders.values() for skip in it.undeclared):
        console.print(f"skipped without a declared reason: {skip}", markup=False)
    failed = sum(it.failed for it in folders.values())
    skipped = sum(len(it.skips) for it in folders.values())
    passed = sum(it.tests for it in folders.values()) - failed - skipped
    console.print(f"{failed} failed, " * (failed > 0) + f"{passed} passed, {skipped} skipped")


def main() -> int:
    """Run a set; the status is 0 if all tests passed and each skip is declared."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.gate")
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    chosen = SETS[options.set]
    print(f"make {options.set}: {chosen.what}", flush=True)
    if missing := list(chosen.missing()):
        print("\n".join(missing), file=sys.stderr)
        return 2
    if subprocess.run(["make", "--no-print-directory", "lint"], cwd=TEMPLATE).returncode:
        return 1
    report = TEMPLATE / "build" / f"{options.set}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    status = subprocess.run(
        [
            # One more than cores, because many tests wait for other processes.
            *(sys.executable, "-m", "pytest", "-n", str(options.jobs + 1), "--dist", "loadgroup"),
            *(f"--junitxml={report}", *chosen.arguments),
        ]
    ).returncode
    if not report.exists():
        return status or 1
    folders = read(report)
    show(options.set, folders)
    return status or int(any(it.undeclared for it in folders.values()))


if __name__ == "__main__":
    sys.exit(main())
