"""What an update would do to a project, found by doing it to a clone; and doing it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from torchsmith import git
from torchsmith.errors import InputError
from torchsmith.project import Project, find
from torchsmith.render import render, update


@dataclass(frozen=True)
class Plan:
    """An update that was tried on a clone.

    Attributes:
        before: The version of the template that the project has.
        after: The one that it would have.
        features: The features that would be on, each with the reason.
        added: Files that would come.
        changed: Files that would change.
        removed: Files that would go.
        lost: Those among them that hold edits of the user's.
        conflicts: Files that would be left with conflict markers.
        diff: All of it, as git shows it.
    """

    before: str
    after: str
    features: dict[str, str]
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    diff: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing would change."""
        return not self.diff


def releases(source: str) -> list[str]:
    """Return the released versions of a template, the oldest first."""
    listed = git.git(Path.cwd(), "ls-remote", "--tags", "--refs", source).splitlines()
    found = []
    for line in listed:
        tag = line.rpartition("refs/tags/")[2]
        try:
            version = Version(tag)
        except InvalidVersion:
            continue
        if not version.is_prerelease:
            found.append((version, tag))
    return [tag for _, tag in sorted(found)]


def newest(project: Project) -> str:
    """Return the version that a project is to follow: a release goes to the last release.

    What was rendered from between two releases follows the template's branch.
    """
    tags = releases(project.source)
    return tags[-1] if project.version in tags else "HEAD"


def standing(project: Project) -> Plan:
    """Return the plan to change nothing."""
    features = {id: project.reason(id) for id in project.features}
    return Plan(before=project.version, after=project.version, features=features)


def plan(project: Project, answers: Mapping[str, Any], *, ref: str) -> Plan:
    """Try an update on a clone of the project, of which only what is committed counts.

    Raises:
        InputError: The update cannot be done.
    """
    top = git.root_of(project.root)
    if top is None:
        raise InputError(f"'{project.root}' is not under git, which updates need")
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        clone = Path(scratch) / "clone"
        git.git(Path(scratch), "clone", "--quiet", str(top), str(clone))
        tried = clone / project.root.relative_to(top)
        update(tried, answers, ref=ref)
        conflicts = _unmerged(tried)
        git.git(tried, "add", "--all", ".")
        listed = git.git(
            tried, "diff", "--cached", "--no-renames", "--relative", "--name-status", "-z", "HEAD"
        ).split("\0")
        files: dict[str, list[str]] = {"A": [], "M": [], "D": []}
        for kind, path in zip(listed[::2], listed[1::2], strict=False):
            files.get(kind, files["M"]).append(path)
        after = find(tried)
        return Plan(
            before=project.version,
            after=after.version,
            features={id: after.reason(id) for id in after.features},
            added=files["A"],
            changed=files["M"],
            removed=files["D"],
            lost=edited(project, files["D"]),
            conflicts=conflicts,
            diff=git.git(tried, "diff", "--cached", "--relative", "HEAD"),
        )


def apply(project: Project, answers: Mapping[str, Any], *, ref: str) -> list[str]:
    """Update the project, and return the files that are left with conflict markers."""
    update(project.root, answers, ref=ref)
    return _unmerged(project.root)


def edited(project: Project, paths: list[str]) -> list[str]:
    """Return those of ``paths`` that are not as the template wrote them."""
    if not paths:
        return []
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        pristine = Path(scratch) / "pristine"
        render(pristine, project.answers, source=project.source, ref=project.version)
        return [path for path in paths if not same(project.root / path, pristine / path)]


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, or are both absent."""
    if not one.is_file() or not other.is_file():
        return one.is_file() == other.is_file()
    return one.read_bytes() == other.read_bytes()


def _unmerged(folder: Path) -> list[str]:
    listed = git.git(folder, "diff", "--name-only", "--relative", "--diff-filter=U", "-z")
    return sorted(set(filter(None, listed.split("\0"))))
