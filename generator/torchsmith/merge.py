"""What an update would do to a project, found by doing it elsewhere; and doing it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from torchsmith import git
from torchsmith.errors import InputError, unreachable
from torchsmith.project import ANSWERS, Project, find
from torchsmith.render import MOVED, render
from torchsmith.sides import Sides
from torchsmith.swap import swap

CURRENT = ":current:"
"""The version of the template that a project has, as an update's ``ref``."""

MARKS = ("before updating", "after updating")
"""What the two sides of a conflict are called, as copier calls them."""


@dataclass(frozen=True)
class Plan:
    """An update that was tried.

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
        tried: The repository that has the outcome as its files; None if nothing was tried.
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
    tried: Path | None = None
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
    discard_edits: bool = False,
) -> Iterator[Plan]:
    """Try an update beside the project, of which only what is committed counts.

    What comes of it lasts as long as the block: `apply` takes from it what the plan shows.

    Args:
        project: What is updated.
        answers: Answers that change.
        ref: The version to come to: a tag, branch or commit, or CURRENT.
        discard_edits: Whether files that go away go with the user's edits in them.

    Raises:
        InputError: The update cannot be done.
    """
    top = git.root_of(project.root)
    if top is None:
        raise InputError(f"'{project.root}' is not under git, which updates need")
    with tempfile.TemporaryDirectory(prefix="torchsmith-") as scratch:
        before, after, tried = (Path(scratch) / name for name in ("before", "after", "tried"))
        version = project.version if ref == CURRENT else ref
        render(after, answers, source=project.source, ref=version, last=project.root / ANSWERS)
        updated = find(after)
        _require_kept(project, answers, updated)
        render(before, project.answers, source=project.source, ref=project.version)

        start, mine = git.git(project.root, "rev-parse", "HEAD", "HEAD:./").split()
        git.borrow(top, tried)
        trees = (git.store(tried, before), mine, git.store(tried, after))
        sides = Sides(*(git.files(tried, tree) for tree in trees))
        moved = sides.follow(_moves(project, updated))
        sides.leave(ANSWERS)
        sides.keep_deleted()
        lost = sides.lost()
        if discard_edits:
            sides.discard(lost)
        git.merge(tried, (sides.before, sides.mine, sides.after), MARKS)
        unmerged = git.unmerged(tried)
        differences = git.differences(tried, mine)
        yield Plan(
            before=project.version,
            after=updated.version,
            features={id: updated.reason(id) for id in updated.features},
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
            tried=tried,
            start=start,
            unmerged=unmerged,
        )


def apply(project: Project, plan: Plan) -> None:
    """Make the project what its plan shows: all of it, or on any exception nothing.

    Raises:
        InputError: The project changed since the plan was made.
    """
    project.require_clean()
    assert plan.tried is not None
    if git.git(project.root, "rev-parse", "HEAD").strip() != plan.start:
        raise InputError(f"'{project.root}' has another commit than the plan: start again")
    tried = plan.tried

    def mark() -> None:
        git.mark_unmerged(project.root, plan.unmerged, objects=tried)

    write = [*plan.added, *plan.changed]
    swap(project.root, tried, write=write, delete=plan.removed, last=mark)


def _moves(before: Project, after: Project) -> list[tuple[str, str]]:
    """The files that moved between two versions, of which either may be the newer one."""
    back = [(new, old) for old, new in before.moved.items()]
    return [*after.moved.items(), *back]


def _require_kept(before: Project, changed: Mapping[str, Any], after: Project) -> None:
    """Refuse a version that drops an answer: its default might take files away unasked.

    Raises:
        InputError: The version has the question, but not the answer.
    """
    for question, answer in before.answers.items():
        now = after.answers.get(question, answer)
        if question not in changed and now != answer and not _as_set(now) == _as_set(answer):
            raise InputError(
                f"{after.version} of the template does not take your {question}={answer}: change "
                f"it first, with torchsmith update --to current --data {question}=..."
            )


def _as_set(answer: Any) -> Any:
    return set(answer) if isinstance(answer, list) else answer


def _free(target: Path, new: Path) -> bool:
    """Whether a file that git ignores, or knows nothing of, is not in the way of a new one."""
    return not os.path.lexists(target) or same(target, new)


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, or are both absent."""
    if not one.is_file() or not other.is_file():
        return one.is_file() == other.is_file()
    return one.read_bytes() == other.read_bytes()
