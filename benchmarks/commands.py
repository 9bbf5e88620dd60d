"""Measures the wall time of renders and of commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

from benchmarks.costs import cost_of, environment
from benchmarks.figures import Row
from maintenance.installing import BIN
from torchsmith import catalog
from torchsmith.template import TEMPLATE

RUNS = 5
"""How often each command is run: its figure is the median."""

OLD, NEW = "v9998.0.0", "v9999.0.0"


def cloned(scratch: Path) -> Path:
    """Return a clone of the template, with a release of its commit and another one after it."""
    template = scratch / "template"
    cost_of(["git", "clone", "--quiet", str(TEMPLATE), str(template)])
    _git(template, "tag", "--force", OLD)
    page = template / "template" / "docs" / "environment.md.jinja"
    page.write_text(page.read_text("utf-8") + "\nA line more.\n", "utf-8")
    _git(template, "commit", "--all", "--quiet", "--message", "A line more")
    _git(template, "tag", NEW)
    return template


def rendering(scratch: Path, template: Path) -> list[Row]:
    """Time copier alone."""
    rows = []
    for preset, limit in {"minimal": 3.0, "standard": 5.0, "full": 3.0}.items():
        options = ["--quiet", "--defaults", "--vcs-ref", OLD, "-d", f"preset={preset}"]
        seconds = [
            cost_of([
                str(BIN / "copier"), "copy", *options, str(template), str(scratch / f"{preset}-{i}")
            ]).wall
            for i in range(RUNS)
        ]  # fmt: skip
        rows.append(Row(f"`copier copy`, `{preset}`", median(seconds), limit, "s"))
    return [*rows, *sizes()]


def sizes() -> list[Row]:
    """Return the sizes of the presets from the catalog."""
    minimal, standard = (catalog.sizes()["presets"][preset] for preset in ("minimal", "standard"))
    return [
        Row("a render of `minimal`", minimal["files"], 300, "files"),
        Row("a render of `minimal`, its lines", minimal["lines"] / 1000, 30, "thousand lines"),
        Row("a render of `standard`", standard["lines"] / 1000, 66, "thousand lines"),
    ]


def commanding(scratch: Path, template: Path) -> list[Row]:
    """Time the command, installed from a wheel, on projects of `full`."""
    torchsmith = str(environment(scratch / "installed", str(TEMPLATE)) / "torchsmith")
    rows = []
    for option in ("--help", "--version"):
        seconds = [cost_of([torchsmith, option]).wall for _ in range(RUNS)]
        rows.append(Row(f"`torchsmith {option}`", median(seconds), 0.5, "s"))
    for preset in ("standard", "full"):
        options = ["--defaults", "-d", f"preset={preset}"]
        seconds = [
            cost_of([torchsmith, "new", str(scratch / f"new-{preset}-{i}"), *options]).wall
            for i in range(RUNS)
        ]
        rows.append(
            Row(f"`torchsmith new`, `{preset}`, without a build", median(seconds), 2.0, "s")
        )

    project = _edited(scratch / "full-0")
    for command in ("preview", "remove opencl --yes", "update --yes", "doctor"):
        seconds = [_seconds(torchsmith, project, command, scratch / "run") for _ in range(RUNS)]
        name = command.removesuffix(" --yes")
        rows.append(Row(f"`torchsmith {name}`, `full`", median(seconds), 4.0, "s"))
    return rows


def _edited(project: Path) -> Path:
    """Put a project under git, with an edit."""
    _git(project, "init", "--quiet")
    _git(project, "add", "--all")
    _git(project, "commit", "--quiet", "--message", "rendered")
    readme = project / "README.md"
    readme.write_text(readme.read_text("utf-8") + "\nAn edit.\n", "utf-8")
    _git(project, "commit", "--all", "--quiet", "--message", "edited")
    return project


def _seconds(torchsmith: str, project: Path, command: str, scratch: Path) -> float:
    """Run a command in a copy of a project, and return how long it takes."""
    shutil.copytree(project, scratch / "project")
    try:
        return cost_of(
            [torchsmith, *command.split(), "--project", str(scratch / "project")],
            XDG_CACHE_HOME=str(scratch / "cache"),
        ).wall
    finally:
        shutil.rmtree(scratch)


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    cost_of(["git", "-C", str(folder), *identity, *arguments])
