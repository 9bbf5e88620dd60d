"""Differences between a project and its template: the user's edits, and newer changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import yaml

from torchsmith import git
from torchsmith.errors import InputError, did_you_mean
from torchsmith.files import same, swap, write_texts
from torchsmith.project import ANSWERS, MANIFEST, Project, find
from torchsmith.render import Job, renders
from torchsmith.scratch import scratch


@dataclass(frozen=True)
class Difference:
    """A template file that the user edited or deleted, or that the template has since changed.

    Attributes:
        path: The file, relative to the project.
        part: The feature that it belongs to, or `ci` or `core`.
        yours: The user's change: "edited", "deleted" or "".
        templates: The template's change: "changed", "deleted", "added" or "".
    """

    path: str
    part: str
    yours: Literal["", "edited", "deleted"]
    templates: Literal["", "changed", "deleted", "added"]


@dataclass(frozen=True)
class Drift:
    """All differences, and the two versions of the template that were compared."""

    before: str
    after: str
    differences: list[Difference]

    @property
    def yours(self) -> bool:
        """Whether a file was edited or deleted by the user."""
        return any(each.yours for each in self.differences)


def drift(project: Project, ref: str, ignoring: list[str]) -> Drift:
    """Compare a project with a render of its own version and with one of the newest.

    Args:
        project: The project.
        ref: The newest version.
        ignoring: Files that are left out.

    Raises:
        InputError: One of the two cannot be rendered.
    """
    own = Job(project.answers, project.source, project.version, recorded=True)
    newest = [] if ref == project.version else [Job(project.answers, project.source, ref)]
    with renders(own, *newest) as folders:
        then, now = folders[0], folders[-1]
        after = find(now)
        paths = {path for folder in (then, now) for path in _files(folder)}
        paths -= {ANSWERS, MANIFEST, *ignoring}
        with _tree(project, then) as (repository, tree):
            listed = repository.compared(tree, project.root, "--no-renames", "--name-status", "-z")
        words = listed.split("\0")[:-1]
        yours: dict[str, Literal["edited", "deleted"]] = {
            path: "deleted" if letter == "D" else "edited"
            for letter, path in zip(words[::2], words[1::2], strict=True)
        }
        found = []
        for path in sorted(paths):
            edit, change = yours.get(path), _templates(then / path, now / path)
            if edit or change:
                part = after.owner(PurePosixPath(path))
                found.append(Difference(path, part, edit or "", change))
        return Drift(project.version, after.version, found)


def restore(project: Project, names: list[str], check: Callable[[], None]) -> None:
    """Overwrite files with the render of the project's version of the template.

    Args:
        project: The project.
        names: The files, relative to its root.
        check: Called just before the files are overwritten; it may raise.

    Raises:
        InputError: The template has no such file.
    """
    with _pristine(project) as pristine:
        _require_known(names, pristine)
        swap(project.root, pristine, write=names, first=check)


def text_diff(project: Project, names: Sequence[str]) -> str:
    """Return a diff from the render of the project's version of the template to its files.

    Args:
        project: The project, with uncommitted changes.
        names: The files, relative to its root; none means all that are not ignored.

    Raises:
        InputError: The template has no such file.
    """
    with _pristine(project) as pristine:
        _require_known(names, pristine)
        unheard = {ANSWERS, MANIFEST, *ignored(project)}
        names = names or sorted(set(_files(pristine)) - unheard)
        with _tree(project, pristine) as (repository, tree):
            return repository.compared(tree, project.root, "--", *names)


def ignored(project: Project) -> list[str]:
    """Return the files that reports omit.

    Raises:
        InputError: The list in the manifest is invalid.
    """
    # `parts` raises first if the manifest has other problems.
    manifest = (project.root / MANIFEST).read_text("utf-8") if project.parts else ""
    names = (yaml.safe_load(manifest) or {}).get("ignore", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"ignore in {MANIFEST} of '{project.root}' is a list of files: restore it with git"
        )
    return names


def ignore(project: Project, names: list[str]) -> None:
    """Add files to the manifest's list of files that reports omit.

    The list is between lines that the template never changes, so a merge cannot conflict there.

    Raises:
        InputError: The template has no such file, or the manifest is invalid.
    """
    ignored(project)  # raises before a render
    with _pristine(project) as pristine:
        _require_known(names, pristine)

    def texts() -> dict[str, str]:
        every = sorted({*ignored(project), *names})
        text = (project.root / MANIFEST).read_text("utf-8")
        return {MANIFEST: _with_ignored(text, every)}

    write_texts(project.root, texts)


def _with_ignored(manifest: str, names: list[str]) -> str:
    line = yaml.safe_dump({"ignore": names}, width=math.inf, default_flow_style=None)
    node = yaml.compose(manifest, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    for key, value in node.value:
        if key.value == "ignore":
            rest = manifest[value.end_mark.index :]
            end = line.rstrip("\n") if rest.startswith("\n") else line
            return manifest[: key.start_mark.index] + end + rest
    return line + manifest


def _require_known(names: Sequence[str], pristine: Path) -> None:
    known = _files(pristine)
    for name in names:
        if name not in known:
            raise no_file(name, known)


def no_file(name: str, known: Sequence[str]) -> InputError:
    """Return the error that the template has no such file."""
    return InputError(
        f"the template has no file '{name}' in this project: name one as doctor lists it, from "
        f"the project's root{did_you_mean(name, known)}"
    )


@contextmanager
def _pristine(project: Project) -> Iterator[Path]:
    """Yield a render of the project by its version of the template."""
    own = Job(project.answers, project.source, project.version, recorded=True)
    with renders(own) as (folder,):
        yield folder


@contextmanager
def _tree(project: Project, folder: Path) -> Iterator[tuple[git.ScratchRepository, str]]:
    """Yield a render as a git tree, in a repository that shares the project's objects."""
    with scratch() as temporary:
        own = project.root if git.root_of(project.root) else None
        repository = git.ScratchRepository(temporary / "repository", own)
        yield repository, repository.store(folder)


def _files(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


def _templates(then: Path, now: Path) -> Literal["", "changed", "deleted", "added"]:
    if same(then, now):
        return ""
    if not then.exists():
        return "added"
    return "changed" if now.exists() else "deleted"
