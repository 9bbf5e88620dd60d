"""`torchsmith smoke`: combinations of answers, rendered, built and tested."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maintenance.smoke import STAGES, STRENGTHS
from torchsmith.commands.checks import require_output, require_template
from torchsmith.commands.common import FOUND, Data, Json, console, parse, print_json, say
from torchsmith.errors import require_choice

if TYPE_CHECKING:
    from rich.table import Table

    from maintenance.smoke.report import Result


def smoke(
    strength: Annotated[
        str,
        typer.Option(
            metavar="STRENGTH", help="What is covered: each value, each pair, or each three."
        ),
    ] = "pairwise",
    shard: Annotated[str, typer.Option(metavar="I/N", help="The I-th of N parts.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="How many builds at a time.")] = 1,
    data: Data = None,
    until: Annotated[
        str, typer.Option(metavar="STAGE", help="Stop after: render, build or test.")
    ] = "test",
    whole_suite: Annotated[
        bool,
        typer.Option("--whole-suite", help="Run all tests of each project, not the quick ones."),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML there.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page there.")
    ] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="Only say what would be tried.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Render, build and test combinations of answers; the status is 1 if one fails.

    Example: torchsmith smoke --strength each --until render
    """
    from maintenance.smoke import report
    from maintenance.smoke.answers import space
    from maintenance.smoke.run import Run, choose
    from maintenance.smoke.trial import Extent

    require_choice("strength", strength, STRENGTHS, f"choose from {', '.join(STRENGTHS)}")
    require_choice("stage", until, STAGES, f"choose from {', '.join(STAGES)}")
    require_template()
    require_output(junit)
    require_output(page)
    axes = space(parse(data))
    rows = choose(axes, strength, shard)
    with tempfile.TemporaryDirectory(prefix="torchsmith-smoke-") as folder:
        run = Run(axes, rows, Extent(until, whole_suite), Path(folder), jobs)
        results = run.results
        if not list_only:
            with _Progress(results, quiet=as_json) as progress:
                run.changed = progress.changed
                run.execute()
    if junit:
        junit.write_text(report.junit_xml(results), encoding="utf-8")
    if page:
        page.write_text(report.html_page(results), encoding="utf-8")
    if as_json:
        print_json(
            [
                {
                    "label": result.label,
                    "state": result.state,
                    "seconds": round(result.seconds, 1),
                    "command": result.command,
                    "smallest": list(result.smallest) if result.repeat else None,
                    "repeat": result.repeat or None,
                }
                for result in results
            ]
        )
    elif list_only:
        console().print(_table(results))
    failed = [result for result in results if result.failed]
    for result in failed:
        say(f"{result.label}: {result.state}\n{result.log[-3000:]}\n{result.verdict}\n")
    if not list_only:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = used.ru_utime + used.ru_stime
        say(f"{len(results) - len(failed)} of {len(results)} passed, {seconds:.0f} s of CPU time")
    if failed:
        raise typer.Exit(FOUND)


class _Progress:
    """Shows results as they arrive: a live table on a terminal, else a line for each."""

    def __init__(self, results: list[Result], *, quiet: bool) -> None:
        from rich.live import Live

        self.results = results
        self.said: set[int] = set()
        terminal = console(stderr=True)
        self.live = Live(console=terminal, auto_refresh=False) if terminal.is_terminal else None
        self.quiet = quiet

    def __enter__(self) -> _Progress:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def changed(self) -> None:
        """Show the results as they are now."""
        if self.live:
            self.live.update(_table(self.results), refresh=True)
        elif not self.quiet:
            for number, result in enumerate(self.results):
                if number not in self.said and (result.failed or result.state == "passed"):
                    self.said.add(number)
                    say(f"[{len(self.said)}/{len(self.results)}] {result.label}: {result.state}")


def _table(results: list[Result]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in ("combination", "state", "seconds"):
        table.add_column(column, overflow="fold")
    for result in results:
        seconds = f"{result.seconds:.0f}" if result.seconds else ""
        style = "red" if result.failed else "green" if result.state == "passed" else ""
        search = ", looking for the smallest set" if result.searching else ""
        table.add_row(result.label, f"{result.state}{search}", seconds, style=style)
    return table
