"""The figures of the docs, and the tables that show them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path

import yaml
from rich.console import Console
from rich.markdown import Markdown

from benchmarks.units import Unit

STORE = Path(__file__).with_name("figures.json")
"""The measurements that the docs show."""
MISSES = Path(__file__).with_name("misses.yml")
"""Why a figure misses its limit."""


@dataclass(frozen=True)
class Row:
    """One figure: the measured value, its unit and its upper limit."""

    figure: str
    measured: float
    limit: float | None
    unit: str
    day: str = field(default_factory=lambda: str(date.today()))

    @property
    def is_missed(self) -> bool:
        """Whether the figure is above its limit."""
        return self.limit is not None and self.measured > self.limit

    @property
    def verdict(self) -> str:
        """Whether the figure is within its limit, or how far above and why; "" without a limit."""
        if self.limit is None:
            return ""
        if not self.is_missed:
            return "yes"
        above = 100 * self.measured / self.limit - 100
        return f"{above:.0f} % above: {reasons().get(self.figure, '?')}"

    def __str__(self) -> str:
        """Return the measured value with its unit."""
        return amount(self.measured, self.unit)


@dataclass(frozen=True)
class Report:
    """All figures, the machine, and the seconds of each unit of the build."""

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

    def updated(self, newer: Report) -> Report:
        """Return these figures, replaced by those of a newer report."""
        new = {row.figure: row for row in newer.rows}
        kept = [new.pop(row.figure, row) for row in self.rows]
        return Report(newer.circumstances, [*kept, *new.values()], newer.units or self.units)

    def part(self) -> str:
        """Return the table of all figures, for docs/figures.md."""
        days = sorted({row.day for row in self.rows})
        when = days[0] if len(days) == 1 else f"from {days[0]} to {days[-1]}"
        return (
            f"Measured {when} {self.circumstances}.\n`make bench` measures them on your machine, "
            "and `python -m benchmarks --write` updates this page.\nRatios are against PyTorch's "
            f"CPU device in the same run, with one thread.\n\n{table(self.rows)}"
        )

    def count(self, figure: str) -> int:
        """Return a figure that is a count."""
        return int(next(row.measured for row in self.rows if row.figure == figure))


def amount(value: float, unit: str) -> str:
    """Return a number with its unit, without an exponent."""
    if unit == "µs" and value <= 0:
        return "none measurable"
    if unit == "µs" and value >= 1000:
        value, unit = value / 1000, "ms"
    digits = f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{digits} {unit}".strip()


def reasons() -> dict[str, str]:
    """Return why figures miss their limits, by figure."""
    found: dict[str, str] = yaml.safe_load(MISSES.read_text("utf-8"))
    return found


def table(rows: list[Row]) -> str:
    """Return the table of figures."""
    lines = ["| figure | measured | limit | within the limit |", "|---|---|---|---|"]
    for row in rows:
        limit = "" if row.limit is None else amount(row.limit, row.unit)
        lines.append(f"| {row.figure} | {row} | {limit} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def show(rows: list[Row]) -> None:
    """Print figures."""
    Console().print(Markdown(table(rows)))


def circumstances() -> str:
    """Describe the machine of this run."""
    compiler = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True).stdout
    return f"on {os.cpu_count()} cores, with torch {version('torch')} and g++ {compiler.strip()}"
