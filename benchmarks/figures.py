"""The figures of the README: what they are, and how they are written down."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.units import Unit

STORE = Path(__file__).with_name("figures.json")
"""What the README's figures were written from."""


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, in which unit, and what it may be at most."""

    figure: str
    measured: float
    limit: float | None
    unit: str

    @property
    def kept(self) -> bool | None:
        """Whether the figure keeps its limit, or None without one."""
        return None if self.limit is None else self.measured <= self.limit


@dataclass(frozen=True)
class Report:
    """All figures of one run, on which day and machine, and what each unit of the build took."""

    circumstances: str
    rows: list[Row]
    units: list[Unit]

    def save(self, file: Path) -> None:
        """Write the report as JSON."""
        file.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, file: Path) -> Report:
        """Read a report that was saved."""
        found = json.loads(file.read_text("utf-8"))
        units = [Unit(unit["seconds"], tuple(unit["sources"])) for unit in found["units"]]
        return cls(found["circumstances"], [Row(**row) for row in found["rows"]], units)

    def part(self) -> str:
        """Return the README's part of figures."""
        return (
            f"Measured {self.circumstances};\n`make bench` repeats all of them on your machine, "
            "and `python -m benchmarks --readme` writes them here.\nRatios are against the CPU "
            f"device in the same run, one thread.\n\n{table(self.rows)}"
        )


def table(rows: list[Row]) -> str:
    """Return figures as the README shows them."""
    verdict = {True: "yes", False: "**no**", None: ""}
    lines = ["| figure | measured | limit | kept |", "|---|---|---|---|"]
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.3g} {row.unit}"
        measured = f"{row.measured:.3g} {row.unit}"
        lines.append(f"| {row.figure} | {measured} | {limit} | {verdict[row.kept]} |")
    return "\n".join(lines) + "\n"


def show(rows: list[Row]) -> None:
    """Print figures."""
    Console().print(Markdown(table(rows)))


def circumstances() -> str:
    """Return on which day and machine a run takes place."""
    compiler = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True).stdout
    return (
        f"on {date.today()}, on {os.cpu_count()} cores, with torch {version('torch')} "
        f"and g++ {compiler.strip()}"
    )
