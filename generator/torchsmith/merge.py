"""What an update would do to a project, found by doing it to a clone; and doing it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from torchsmith import git
from torchsmith.edits import Edits
from torchsmith.errors import InputError
from torchsmith.project import ANSWERS, Project, find
from torchsmith.render import MOVED, render, unreachable, update
from torchsmith.swap import swap


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
        moved: Files with the user's edits that the template moved, and where these follow it to.
        lost: Files with the user's edits that the template has no more.
        blocked: Files that would come where the user has one that git does not know.
        conflicts: Files that would be left for the user to resolve, those of `lost` among them.
        diff: All of it, as git shows it.
        clone: The clone on which it was tried; None if nothing was.
        start: The commit of the project that it was tried on.
        unmerged: What git's index has of the conflicts.
    """

    before: str
    after: str
    features: dict[str, str]
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    diff: str = ""
    clone: Path | None = None
    start: str = ""
    unmerged: list[git.Unmerged] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing would change."""
        return not self.diff and not self.conflicts


def releases(source: str) -> list[str]:
    """Return the released versions of a template, the oldest first.

    Raises:
        InputError: The template cannot be reached.
    """
    try:
        tags = git.git(Path.cwd(), "ls-remote", "--tags", "--refs", git.address(source))
    except git.GitError as error:
        raise unreachable(source, error.reason, MOVED) from error
    found = []
    for line in tags.splitlines():
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


@contextmanager
def trying(
    project: Project,
    answers: Mapping[str, Any],
    *,
    ref: str,
    template: str | None = None,
    discard_edits: bool = False,
) -> Iterator[Plan]:
    """Try an update on a clone of the project, of which only what is committed counts.

    The clone lasts as long as the block: `apply` takes from it what the plan shows.

    Args:
        project: What is updated.
        answers: Answers that change.
        ref: The version to come to: a tag, branch or commit, or CURRENT.
        template: Where the template is from now on, if it moved.
        discard_edits: Whether files that go away go with the user's edits in them.

    Raises:
        InputError: The update cannot be done.
    """
    top = git.root_of(project.root)
    if top is None:
        raise InputError(f"'{project.root}' is not under git, which updates need")
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        clone, pristine = Path(scratch) / "clone", Path(scratch) / "pristine"
        git.git(Path(scratch), "clone", "--quiet", str(top), str(clone))
        tried = clone / project.root.relative_to(top)
        start = git.git(tried, "rev-parse", "HEAD").strip()
        if template:
            _repoint(tried, template)
        update(tried, answers, ref=ref)
        after = find(tried)
        source = template or project.source
        removed = git.differences(tried, start).deleted
        if removed:
            render(pristine, project.answers, source=source, ref=project.version)
        edits = Edits(tried, pristine, start)
        moved = edits.follow(removed, after.moved)
        lost = [path for path in removed if path not in moved and edits.made(path)]
        if not discard_edits:
            edits.keep(lost)
        unmerged = git.unmerged(tried)
        differences = git.differences(tried, start)
        yield Plan(
            before=project.version,
            after=after.version,
            features={id: after.reason(id) for id in after.features},
            added=differences.added,
            changed=differences.changed,
            removed=differences.deleted,
            moved=moved,
            lost=lost,
            blocked=[
                path for path in differences.added if not _free(project.root / path, tried / path)
            ],
            conflicts=sorted({entry.path for entry in unmerged}),
            diff=differences.text,
            clone=tried,
            start=start,
            unmerged=unmerged,
        )


def apply(project: Project, plan: Plan) -> None:
    """Make the project what its plan shows: all of it, or on any exception nothing.

    Raises:
        InputError: The project changed since the plan was made.
    """
    project.require_clean()
    assert plan.clone is not None
    if git.git(project.root, "rev-parse", "HEAD").strip() != plan.start:
        raise InputError(f"'{project.root}' has another commit than the plan: start again")
    top = git.root_of(project.root)
    assert top is not None
    clone = plan.clone

    def mark() -> None:
        git.mark_unmerged(top, plan.unmerged, objects=clone)

    write = [*plan.added, *plan.changed]
    swap(project.root, clone, write=write, delete=plan.removed, last=mark)


def _repoint(project: Path, template: str) -> None:
    """Commit another address of the template, as copier reads it from the answers."""
    answers = project / ANSWERS
    line = f"_src_path: {json.dumps(template)}\n"
    changed = re.sub(r"(?m)^_src_path: .*\n", lambda _: line, answers.read_text("utf-8"))
    answers.write_text(changed, "utf-8")
    git.commit(project, ANSWERS)


def _free(target: Path, new: Path) -> bool:
    """Whether a file that git ignores, or knows nothing of, is not in the way of a new one."""
    return not os.path.lexists(target) or same(target, new)


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, or are both absent."""
    if not one.is_file() or not other.is_file():
        return one.is_file() == other.is_file()
    return one.read_bytes() == other.read_bytes()
