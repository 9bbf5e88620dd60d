"""Writes a new project into its folder: completely, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchsmith.errors import InputError
from torchsmith.scratch import require_writable, scratch


def require_free(destination: Path, template: Path) -> None:
    """Check that a project can be written to a folder.

    Args:
        destination: The folder; it must be absent, or empty except for `.git`.
        template: The template's folder; the destination must be outside it.

    Raises:
        InputError: The folder cannot be used.
    """
    there = nearest(destination)
    if not there.exists():
        raise InputError(f"'{there}' is a broken link: remove it, or name a new folder")
    if not there.is_dir():
        raise InputError(f"'{there}' is a file: name a new folder")
    _require_empty(destination)
    require_writable(there)
    if template.is_dir() and destination.resolve().is_relative_to(template.resolve()):
        raise InputError(
            f"'{destination}' is inside the template: name a folder outside '{template}'"
        )


def nearest(destination: Path) -> Path:
    """Return the folder or its nearest parent that exists; a broken link counts as existing."""
    folders = (destination, *destination.parents)
    return next(each for each in folders if each.exists() or each.is_symlink())


def _require_empty(destination: Path) -> None:
    if destination.is_dir() and any(entry.name != ".git" for entry in destination.iterdir()):
        raise InputError(f"'{destination}' is not empty: name a new folder")


@contextmanager
def made(destination: Path) -> Iterator[Path]:
    """Yield the path of a folder to create; it becomes the destination at the end of the block.

    Raises:
        InputError: The destination has files at the end of the block.
    """
    target = destination.resolve()  # a link to an empty folder stays
    missing = [folder for folder in target.parents if not folder.exists()]
    kept = False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch(target.parent, ".torchsmith-new-") as folder:
            stage = folder / target.name
            yield stage
            try:
                _move(stage, target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise InputError(f"'{destination}' is not empty: name a new folder") from error
        kept = True
    finally:
        for folder in () if kept else missing:
            with suppress(OSError):  # another process may have written there
                folder.rmdir()


def _move(stage: Path, destination: Path) -> None:
    """Move a folder to a destination that is absent, or empty except for `.git`."""
    if Path.cwd().is_relative_to(destination):
        _fill(destination, stage)
        return
    repository = destination / ".git"
    if repository.exists() and not (stage / ".git").exists():
        repository.rename(stage / ".git")
        try:
            stage.replace(destination)
        except OSError:
            (stage / ".git").rename(repository)
            raise
    else:
        stage.replace(destination)


def _fill(destination: Path, stage: Path) -> None:
    """Move files into the user's current folder: its shell would not see a new folder there.

    Raises:
        InputError: Something is in the folder.
    """
    _require_empty(destination)
    moved: list[Path] = []
    try:
        for entry in list(stage.iterdir()):
            moved.append(entry.rename(destination / entry.name))
    except BaseException:
        for entry in moved:
            entry.rename(stage / entry.name)
        raise
