"""Measures the figures of the README: ``python -m benchmarks [--json FILE] [--readme]``.

The host's figures come from the rendered project's own benchmark, on the backend built here.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from benchmarks import units
from torchsmith.pages import replace_part
from torchsmith.render import render
from torchsmith.template import TEMPLATE

BIN = Path(sys.executable).parent


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
class Cost:
    """Seconds that a command took."""

    wall: float
    cpu: float


def cost_of(command: list[str], **environment: str) -> Cost:
    """Run a command and return its seconds, its children's included."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment},
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu)


def cloned(scratch: Path) -> Path:
    """Return a clone of the template, which is what its users render from."""
    template = scratch / "template"
    cost_of(["git", "clone", "--quiet", str(TEMPLATE), str(template)])
    return template


def rendering(scratch: Path, template: Path) -> list[Row]:
    """Time renders through the API; the first of each is thrown away."""
    rows = []
    for preset in ("minimal", "full"):
        seconds = []
        for i in range(8):
            start = time.perf_counter()
            render(scratch / f"{preset}-{i}", {"preset": preset}, source=str(template))
            seconds.append(time.perf_counter() - start)
        rows.append(Row(f"render `{preset}`", min(seconds[1:]), 3.0, "s"))
    return rows


def commanding(scratch: Path, template: Path) -> list[Row]:
    """Time the command, as a user waits for it."""
    command = [sys.executable, "-m", "torchsmith.cli"]
    place = {"PYTHONPATH": str(TEMPLATE / "generator")}
    project = scratch / "commanded"
    cost_of([*command, "--help"], **place)
    help = cost_of([*command, "--help"], **place)
    options = ["--defaults", "--template", str(template), "-d", "features=[amp]"]
    new = cost_of([*command, "new", str(project), *options], **place)
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for step in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "start"]):
        cost_of(["git", "-C", str(project), *identity, *step])
    show = [*command, "preview", "--add", "rng", "--project", str(project)]
    preview = cost_of(show, **place)
    return [
        Row("`torchsmith --help`", help.wall, 0.5, "s"),
        Row("`torchsmith new`, without a build", new.wall, 3.0, "s"),
        Row("`torchsmith preview`", preview.wall, 5.0, "s"),
    ]


def configure(project: Path, build: Path, *options: str) -> list[str]:
    """Return the command that configures a build of the project."""
    return [
        "cmake", "-S", str(project), "-B", str(build), "-G", "Ninja",
        f"-DPython_EXECUTABLE={sys.executable}", *options,
    ]  # fmt: skip


def building(project: Path, scratch: Path) -> tuple[list[Row], list[units.Unit]]:
    """Build `full` clean without ccache, again after touching a kernel, and from a warm ccache."""
    plain, log = project / "build/plain", scratch / "compilers.log"
    cost_of(configure(project, plain, units.launcher(log)), CCACHE_DISABLE="1")
    clean = cost_of(["cmake", "--build", str(plain)], CCACHE_DISABLE="1")
    compiled = units.read(log, plain, project)
    (project / "device/reference/unary.cpp").touch()
    touched = cost_of(["cmake", "--build", str(plain)], CCACHE_DISABLE="1")
    rows = [
        Row("clean build of `full`, no ccache, CPU time", clean.cpu, 125, "s"),
        Row("its dearest translation unit, CPU time", compiled[0].seconds, 15, "s"),
        Row("the same, wall time", clean.wall, None, "s"),
        Row("build after touching one kernel file", touched.wall, 15, "s"),
    ]
    if subprocess.run(["sh", "-c", "command -v ccache"], stdout=subprocess.DEVNULL).returncode == 0:
        cache = {"CCACHE_DIR": str(scratch / "ccache")}
        for attempt in ("cold", "warm"):
            build = project / f"build/cached-{attempt}"
            cost_of(configure(project, build), **cache)
            cached = cost_of(["cmake", "--build", str(build)], **cache)
        rows.append(Row("build of `full` from a warm ccache", cached.wall, 15, "s"))
    return rows, compiled


def running(project: Path, scratch: Path) -> list[Row]:
    """Run the rendered project's benchmark in an environment that has only its backend."""
    environment = scratch / "environment"
    cost_of([sys.executable, "-m", "venv", "--system-site-packages", str(environment)])
    python = environment / "bin/python"
    site = next((BIN.parent / "lib").glob("python3*/site-packages"))
    own = next((environment / "lib").glob("python3*/site-packages"))
    (own / "parent.pth").write_text(f"{site}\n")
    cost_of([
        sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet",
        "--no-build-isolation", "--no-deps", "--force-reinstall", str(project),
    ])  # fmt: skip
    figures = scratch / "figures.json"
    cost_of([str(python), str(project / "benchmarks/run.py"), "--json", str(figures)])
    rows = []
    for case in json.loads(figures.read_text())["cases"]:
        if case["excess_limit"] is not None:
            limit = case["excess_limit"]
            rows.append(Row(f"{case['name']}, above the CPU", case["excess"], limit, "µs"))
        else:
            rows.append(Row(f"{case['name']}, against the CPU", case["ratio"], case["limit"], "x"))
    return rows


def markdown(rows: list[Row]) -> str:
    """Return the figures as the README shows them."""
    verdict = {True: "yes", False: "**no**", None: ""}
    lines = ["| figure | measured | limit | kept |", "|---|---|---|---|"]
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.3g} {row.unit}"
        lines.append(
            f"| {row.figure} | {row.measured:.3g} {row.unit} | {limit} | {verdict[row.kept]} |"
        )
    return "\n".join(lines)


def circumstances() -> str:
    """Return the sentence above the README's table."""
    compiler = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True).stdout
    return (
        f"Measured on {date.today()}, on {os.cpu_count()} cores, with torch {version('torch')} "
        f"and g++ {compiler.strip()};\n`make bench` repeats all of them on your machine, and "
        "`python -m benchmarks --readme` writes them here.\nRatios are against the CPU device in "
        "the same run, one thread.\n\n"
    )


def show(rows: list[Row]) -> None:
    """Print the figures."""
    table = Table("figure", "measured", "limit", "kept")
    for line in markdown(rows).splitlines()[2:]:
        table.add_row(*(cell.strip(" *") for cell in line.strip("|").split("|")))
    Console().print(table)


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument(
        "--readme", action="store_true", help="put them into README.md and build-times.md"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        template = cloned(scratch)
        rows = rendering(scratch, template) + commanding(scratch, template)
        project = scratch / "full-0"
        built, compiled = building(project, scratch)
        rows += built + running(project, scratch)
    show(rows)
    Console().print(Markdown(units.markdown(compiled)))
    if arguments.json is not None:
        report = {
            "figures": [{**asdict(row), "kept": row.kept} for row in rows],
            "translation_units": [asdict(unit) for unit in compiled],
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    if arguments.readme:
        readme = TEMPLATE / "README.md"
        figures = circumstances() + markdown(rows) + "\n"
        text = replace_part(readme.read_text("utf-8"), "figures", figures)
        readme.write_text(text, "utf-8")
        title = "# What a clean build of `full` compiles\n\n`make bench` measures it again.\n\n"
        (TEMPLATE / "benchmarks/build-times.md").write_text(title + units.markdown(compiled))


if __name__ == "__main__":
    main()
