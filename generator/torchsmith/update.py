"""Updates: git merges outside the project, which then receives the result.

The merge base is the template's old render. The sides are the project's last commit and the new
render. Earlier commits are not needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.version import InvalidVersion, Version

from torchsmith import git
from torchsmith.errors import InputError
from torchsmith.files import same, swap
from torchsmith.project import ANSWERS, Project, find
from torchsmith.render import Job, renders
from torchsmith.scratch import scratch
from torchsmith.sides import Sides, collides, renamed_paths
from torchsmith.template import REPOSITORY, TAG, is_release
from torchsmith.versions import releases

CURRENT = ":current:"
"""The version of the template that a project has, as an update's ``ref``."""

YOURS = "yours"
"""The name of the project's side in conflict markers; the other name is the template's version."""


@dataclass(frozen=True)
class Plan:
    """The result of a trial update.

    Attributes:
        before: The version of the template that the project has.
        after: The one that it would have.
        features: The features that would be on, each with the reason.
        added: Files that would be added.
        changed: Files that would change.
        removed: Files that would be removed.
        moved: Files with the user's edits, and the user's own files, that move with the template's.
        renamed: Files that the user renamed and the template changed: the template's paths, and
            the user's.
        deleted: Files that the user deleted and the template changed; they stay deleted.
        own: The user's own files that stay where the template's are removed, with the reasons.
        lost: Files with the user's edits that the template no longer has.
        kept: The paths of those in `lost` that stay, as conflicts.
        blocked: Files that git does not track, at the paths of new files or of their folders.
        conflicts: Files in conflict; those in `lost` are included unless edits are discarded.
        diff: The changes, as `git diff` prints them.
        totals: Counts of changed files, inserted lines and deleted lines.
        merged: The merged files; None if no merge was tried.
    """

    before: str
    after: str
    features: dict[str, str]
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    diff: str = ""
    totals: tuple[int, int, int] = (0, 0, 0)
    merged: Merged | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing would change."""
        return not self.diff and not self.conflicts


@dataclass(frozen=True)
class Merged:
    """The result of a merge.

    Attributes:
        start: The commit of the project that was merged.
        repository: The repository with the contents of all files.
        files: A folder with the added and changed files.
        conflicts: Index entries of the files in conflict.
    """

    start: str
    repository: git.ScratchRepository
    files: Path
    conflicts: list[git.Conflict]


def newest(project: Project) -> str:
    """Return the version that a project updates to: for a release, the last release.

    A project of a commit between two releases updates to HEAD. An installed torchsmith release
    updates projects of its repository to itself, unless they are newer.
    """
    if is_release() and project.source == REPOSITORY and project.version.startswith("v"):
        with suppress(InvalidVersion):  # edited by hand: reading the repository reports it
            return max(TAG, project.version, key=lambda tag: Version(tag.partition("-")[0]))
    tags = releases(project.source)
    return tags[-1] if project.version in tags else "HEAD"


def standing(project: Project) -> Plan:
    """Return a plan without changes."""
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
    """Try an update outside the project, with its committed files only.

    The merged files exist until the end of the block; `apply` moves them into the project.

    Args:
        project: The project to update.
        answers: Answers that change.
        ref: The new version: a tag, branch or commit, or CURRENT.
        discard_edits: Whether to also remove files with the user's edits.

    Raises:
        InputError: The update cannot be done.
    """
    git.require_merges()
    project.require_repository()
    project.require_answers_as_rendered()
    project.require_committed_answers()
    version = project.version if ref == CURRENT else ref
    if ref != CURRENT:
        answers = project.keeping_features(answers)
    before = Job(project.answers, project.source, project.version, recorded=True)
    after = Job(answers, project.source, version, last=project.root / ANSWERS)
    with renders(before, after) as folders, scratch() as temporary:
        updated = find(folders[1])
        _require_answers_taken(project, answers, updated)
        yield _plan(project, updated, folders, temporary, discard_edits=discard_edits)


def _plan(
    project: Project,
    updated: Project,
    folders: Sequence[Path],
    temporary: Path,
    *,
    discard_edits: bool,
) -> Plan:
    """Merge the difference of two renders into the project's last commit."""
    repository = git.ScratchRepository(temporary / "repository", project.root)
    start, mine = git.git(project.root, "rev-parse", "HEAD", "HEAD:./").split()
    before, after = map(repository.store, folders)
    sides = Sides(repository.files(before), repository.files(mine), repository.files(after))
    own = sides.mine.keys() - sides.before.keys()
    renames = repository.renames(before, mine)
    moves, renamed = renamed_paths(sides.before, sides.after, _names(project, updated))
    moves += _moves(project, updated)
    sides.rename(renames, moves)
    sides.follow(moves)
    sides.carry(renamed)
    sides.leave(ANSWERS)
    sides.keep_deleted()
    edited = sides.before.copy()
    lost = sides.lost()
    names = {YOURS: sides.mine, f"template-{updated.version}": sides.after}
    tree, conflicts = repository.merge(sides.before, names)
    kept = {} if discard_edits else _places_kept(lost, sides.after)
    if kept:
        tree = repository.tree(repository.files(tree) | {kept[path]: lost[path] for path in lost})
        for path, file in lost.items():
            conflicts += [git.Conflict(kept[path], stage, version)
                          for stage, version in ((1, edited[path]), (2, file))]  # fmt: skip
    differences = repository.differences(mine, tree)
    files = temporary / "files"
    repository.write(tree, [*differences.added, *differences.changed], files)
    changed = {*differences.changed, *(conflict.path for conflict in conflicts)}
    added = {*differences.added}
    return Plan(
        before=project.version,
        after=updated.version,
        features={id: updated.reason(id) for id in updated.features},
        added=differences.added,
        changed=differences.changed,
        removed=differences.deleted,
        moved=sides.moved,
        renamed={
            old: new for old, new in sides.renamed.items()
            if new in changed or (new in added and edited[new] != sides.after[new])
        },
        deleted=sides.deleted,
        own={
            path: f"was {old}, which the template no longer has"
            for path, old in sides.orphaned.items()
        } | _stranded(project, updated, own - {*sides.renamed.values()}),
        lost=sorted(lost),
        kept=kept,
        blocked=[
            found for path in differences.added
            if (found := _in_the_way(project.root, path, files, differences.deleted))
        ],
        conflicts=sorted({conflict.path for conflict in conflicts}),
        diff=differences.text,
        totals=differences.totals,
        merged=Merged(start, repository, files, conflicts),
    )  # fmt: skip


def apply(project: Project, plan: Plan) -> None:
    """Apply a plan to the project: completely, or not at all if it raises.

    Added, changed and removed files are staged, as after a merge.

    Raises:
        InputError: The project changed since the plan was made.
    """
    merged = plan.merged
    assert merged is not None
    write = [*plan.added, *plan.changed]

    def check() -> None:
        project.require_clean()
        if git.git(project.root, "rev-parse", "HEAD").strip() != merged.start:
            raise InputError(f"'{project.root}' has another commit than the plan: start again")

    def stage() -> None:
        paths = [*write, *plan.removed]
        git.stage(project.root, paths, merged.conflicts, merged.repository)

    swap(project.root, merged.files, write=write, delete=plan.removed, first=check, last=stage)


def _moves(before: Project, after: Project) -> list[tuple[str, str]]:
    """Return the files that moved between two versions, either of which may be the newer one."""
    back = [(new, old) for old, new in before.moved.items()]
    return [*after.moved.items(), *back]


def _names(before: Project, after: Project) -> dict[str, str]:
    """Return the parts of paths that are renamed with the backend, with their new names."""
    old, new = (str(each.answers.get("backend_name")) for each in (before, after))
    return {} if old == new else {f"torch_{old}": f"torch_{new}", old: new}


def _places_kept(lost: git.Files, after: git.Files) -> dict[str, str]:
    """Return the paths of lost files; if the path is taken, a name like git's for conflicts."""
    return {
        path: f"{path.replace('/', '~')}~{YOURS}" if collides(path, after) else path
        for path in lost
    }


def _stranded(before: Project, after: Project, own: set[str]) -> dict[str, str]:
    """Return the user's own files in removed features, and how they are still used."""
    uses = {
        "csrc": "compiled", "device/tests": "run", "device": "compiled", "python": "installed",
        "tests": "run",
    }  # fmt: skip
    gone = {id: before.parts[id] for id in before.features if id not in after.features}
    found = {}
    for path in sorted(own):
        for id, part in gone.items():
            if part.owns(PurePosixPath(path)):
                use = next((uses[at] for at in uses if path.startswith(f"{at}/")), "")
                still = f", and is still {use}" if use else ""
                found[path] = f"is yours, stays where {id} was{still}"
    return found


def _require_answers_taken(before: Project, changed: Mapping[str, Any], after: Project) -> None:
    """Refuse a version that replaces an answer by its default, which could remove files.

    Raises:
        InputError: The version has the question, but rejects the answer.
    """
    # A preset is an answer for the features.
    given = {*changed, *(["features"] if "preset" in changed else [])}
    for question, answer in before.answers.items():
        now = after.answers.get(question, answer)
        if question not in given and now != answer and not _as_set(now) == _as_set(answer):
            raise InputError(
                f"{after.version} of the template does not take your {question}={answer}: change "
                f"it first, with {before.go_to}torchsmith update --to current -d {question}=..."
            )


def _as_set(answer: Any) -> Any:
    return set(answer) if isinstance(answer, list) else answer


def _in_the_way(root: Path, path: str, new: Path, deleted: Sequence[str]) -> str:
    """Return the untracked or ignored file that a new file would overwrite or needs as a folder."""
    target = root / path
    for parent in PurePosixPath(path).parents:
        there = root / parent
        if os.path.lexists(there) and not there.is_dir() and parent.as_posix() not in deleted:
            return parent.as_posix()
    if target.is_dir() and not target.is_symlink():
        inside = (each for each in target.rglob("*") if each.is_symlink() or not each.is_dir())
        return "" if {each.relative_to(root).as_posix() for each in inside} <= {*deleted} else path
    return path if os.path.lexists(target) and not same(target, new / path) else ""
