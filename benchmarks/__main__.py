"""Measures the figures of the docs: ``python -m benchmarks [--json FILE] [--write]``.

The host's figures come from the rendered project's own benchmark, on the backend built here.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from benchmarks import units
from benchmarks.building import building, running
from benchmarks.commands import cloned, commanding, rendering
from benchmarks.compiling import compiling
from benchmarks.costs import environment
from benchmarks.features import costs
from benchmarks.figures import STORE, Report, circumstances, show
from benchmarks.low_precision import multiplying
from benchmarks.packing import packing
from benchmarks.page import browsing
from benchmarks.plans import preparing
from maintenance import pages
from torchsmith.template import TEMPLATE


def measure() -> Report:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        template = cloned(scratch)
        rows = rendering(scratch, template) + browsing(scratch, template)
        rows += commanding(scratch, template)
        project = scratch / "full-1"
        built, compiled = building(scratch / "standard-1", project, scratch)
        full = environment(scratch / "environment", str(project))
        standard = environment(scratch / "environment-of-standard", str(scratch / "standard-1"))
        rows += built + running(full, project, scratch)
        rows += costs(full / "python", standard / "python")
        rows += compiling(full / "python", project)
        rows += multiplying(full / "python")
        rows += preparing(full / "python")
        rows += packing(full / "python", project)
    return Report(circumstances(), rows, compiled)


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument(
        "--write", action="store_true", help="put them into README.md, docs and build-times.md"
    )
    arguments = parser.parse_args()
    report = measure()
    show(report.rows)
    Console().print(Markdown(units.markdown(report.units)))
    if arguments.json is not None:
        report.save(arguments.json)
    if arguments.write:
        report.save(STORE)
        pages.main()
        (TEMPLATE / "benchmarks" / "build-times.md").write_text(units.page(report.units), "utf-8")


if __name__ == "__main__":
    main()
