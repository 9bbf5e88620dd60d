"""What rendering and the command take, as a user waits for them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.costs import BIN, cost_of, environment
from benchmarks.figures import Row
from torchsmith.template import TEMPLATE


def cloned(scratch: Path) -> Path:
    """Return a clone of the template, with what is committed as a release and another after it."""
    template = scratch / "template"
    cost_of(["git", "clone", "--quiet", str(TEMPLATE), str(template)])
    _git(template, "tag", "--force", "v9998.0.0")
    page = template / "template" / "docs" / "environment.md.jinja"
    page.write_text(page.read_text("utf-8") + "\nA line more.\n", "utf-8")
    _git(template, "commit", "--all", "--quiet", "--message", "A line more")
    _git(template, "tag", "v9999.0.0")
    return template


def rendering(scratch: Path, template: Path) -> list[Row]:
    """Time copier; the first render of each is thrown away."""
    rows = []
    for preset in ("minimal", "standard", "full"):
        options = ["--quiet", "--defaults", "--vcs-ref", "v9998.0.0", "-d", f"preset={preset}"]
        seconds = [
            cost_of([
                str(BIN / "copier"), "copy", *options, str(template), str(scratch / f"{preset}-{i}")
            ]).wall
            for i in range(4)
        ]  # fmt: skip
        rows.append(Row(f"`copier copy`, `{preset}`", min(seconds[1:]), 3.0, "s"))
    return rows


def commanding(scratch: Path, template: Path) -> list[Row]:
    """Time the command as it is when it was installed from a wheel."""
    torchsmith = str(environment(scratch / "installed", str(TEMPLATE)) / "torchsmith")
    rows = []
    for option in ("--help", "--version"):
        seconds = min(cost_of([torchsmith, option]).wall for _ in range(5))
        rows.append(Row(f"`torchsmith {option}`", seconds, 0.5, "s"))
    seconds = min(
        cost_of([torchsmith, "new", str(scratch / f"new-{i}"), "--defaults"]).wall for i in range(4)
    )
    rows.append(Row("`torchsmith new`, without a build", seconds, 3.0, "s"))

    project = scratch / "full-0"
    _git(project, "init", "--quiet")
    _git(project, "add", "--all")
    _git(project, "commit", "--quiet", "--message", "rendered")
    readme = project / "README.md"
    readme.write_text(readme.read_text("utf-8") + "\nAn edit.\n", "utf-8")
    _git(project, "commit", "--all", "--quiet", "--message", "edited")
    at = ["--project", str(project)]
    preview = cost_of([torchsmith, "preview", *at])
    update = cost_of([torchsmith, "update", "--yes", *at])
    return [
        *rows,
        Row("`torchsmith preview`", preview.wall, 5.0, "s"),
        Row("`torchsmith update`, user time", update.user, 8.0, "s"),
    ]


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    cost_of(["git", "-C", str(folder), *identity, *arguments])
