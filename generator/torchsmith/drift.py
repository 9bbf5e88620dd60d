"""Where a project differs from what its answers render: by edits, or by the template since."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from torchsmith.merge import newest, same
from torchsmith.project import ANSWERS, Project, find
from torchsmith.render import render


@dataclass(frozen=True)
class Difference:
    """A file of the template's that is not as the newest version would render it.

    Attributes:
        path: The file, as seen from the project.
        part: The feature that it belongs to, or `ci` or `core`.
        yours: What you did to it: "edited", "deleted" or nothing.
        templates: What the template did since: "changed", "deleted", "added" or nothing.
    """

    path: str
    part: str
    yours: Literal["", "edited", "deleted"]
    templates: Literal["", "changed", "deleted", "added"]


@dataclass(frozen=True)
class Drift:
    """All differences, and the versions between which the template's arose."""

    before: str
    after: str
    differences: list[Difference]


def drift(project: Project) -> Drift:
    """Compare a project with a render of its own version and with one of the newest.

    Raises:
        InputError: One of the two cannot be rendered.
    """
    ref = newest(project)
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        then, now = Path(scratch) / "then", Path(scratch) / "now"
        render(then, project.answers, source=project.source, ref=project.version)
        if ref == project.version:
            now = then
        else:
            render(now, project.answers, source=project.source, ref=ref)
        after = find(now)
        paths = {path for folder in (then, now) for path in _files(folder)} - {ANSWERS}
        found = []
        for path in sorted(paths):
            difference = Difference(
                path=path,
                part=after.owner(PurePosixPath(path)),
                yours=_yours(project.root / path, then / path),
                templates=_templates(then / path, now / path),
            )
            if difference.yours or difference.templates:
                found.append(difference)
        return Drift(project.version, after.version, found)


def _files(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


def _yours(mine: Path, then: Path) -> Literal["", "edited", "deleted"]:
    if not then.exists():
        return ""
    if not mine.exists():
        return "deleted"
    return "" if same(mine, then) else "edited"


def _templates(then: Path, now: Path) -> Literal["", "changed", "deleted", "added"]:
    if same(then, now):
        return ""
    if not then.exists():
        return "added"
    return "changed" if now.exists() else "deleted"
