"""Measures the figures of the docs: ``python -m benchmarks [PART ...] [--json FILE] [--write]``.

The host's figures come from the rendered project's own benchmark, on the backend built here.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from benchmarks import units
from benchmarks.building import building, running
from benchmarks.commands import cloned, commanding, rendering
from benchmarks.compiling import compiling
from benchmarks.costs import environment
from benchmarks.evidence import counting
from benchmarks.features import costs
from benchmarks.figures import STORE, Report, Row, circumstances, show
from benchmarks.low_precision import multiplying
from benchmarks.packing import packing
from benchmarks.page import browsing
from benchmarks.plans import preparing
from maintenance import pages
from torchsmith.template import TEMPLATE

PARTS = ("commands", "building", "running", "evidence", "features", "compiling", "kernels")
"""The parts that can be measured separately."""


def measure(parts: Collection[str], found: Callable[[list[Row]], None]) -> list[units.Unit]:
    """Measure parts, and call ``found`` with the figures of each; return the units of the build."""
    compiled: list[units.Unit] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        template = cloned(scratch)
        rendered = rendering(scratch, template)
        if "commands" in parts:
            found(rendered + browsing(scratch, template))
            found(commanding(scratch, template))
        minimal, standard, project = (
            scratch / f"{preset}-1" for preset in ("minimal", "standard", "full")
        )
        if "building" in parts:
            rows, compiled = building(minimal, standard, project, scratch)
            found(rows)
        if set(parts) <= {"commands", "building"}:
            return compiled
        full = environment(scratch / "environment", str(project))
        if "running" in parts:
            found(running(full, project, scratch))
        if "evidence" in parts:
            found(counting(full / "python", project))
        if "features" in parts:
            usual = environment(scratch / "environment-of-standard", str(standard))
            found(costs(full / "python", usual / "python"))
        if "compiling" in parts:
            found(compiling(full / "python", project))
        if "kernels" in parts:
            found(multiplying(full / "python"))
            found(preparing(full / "python"))
            found(packing(full / "python", project))
    return compiled


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, or of {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument(
        "--write", action="store_true", help="put them into README.md, docs and build-times.md"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}, only {', '.join(PARTS)}")
    rows: list[Row] = []

    def found(more: list[Row]) -> None:
        rows.extend(more)
        show(more)
        if arguments.json is not None:
            Report(circumstances(), rows, []).save(arguments.json)

    compiled = measure(arguments.parts or PARTS, found)
    report = Report(circumstances(), rows, compiled)
    if compiled:
        Console().print(Markdown(units.markdown(compiled)))
    if arguments.json is not None:
        report.save(arguments.json)
    if arguments.write:
        report = Report.load(STORE).updated(report)
        report.save(STORE)
        pages.main()
        (TEMPLATE / "benchmarks" / "build-times.md").write_text(units.page(report.units), "utf-8")


if __name__ == "__main__":
    main()
