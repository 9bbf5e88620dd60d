"""The folder that a new project comes to: it is there whole, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchsmith.errors import InputError
from torchsmith.scratch import require_writable, scratch


def require_free(destination: Path, template: Path) -> None:
    """Refuse a destination that cannot take a project.

    Args:
        destination: The folder, which is to be absent, or empty but for git's folder.
        template: The template's folder, in which no project may be.

    Raises:
        InputError: It cannot.
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
    """Return the folder, or the nearest one above it that is there, be it a link to nothing."""
    folders = (destination, *destination.parents)
    return next(each for each in folders if each.exists() or each.is_symlink())


def _require_empty(destination: Path) -> None:
    if destination.is_dir() and any(entry.name != ".git" for entry in destination.iterdir()):
        raise InputError(f"'{destination}' is not empty: name a new folder")


@contextmanager
def made(destination: Path) -> Iterator[Path]:
    """Yield a folder to be made, which becomes the destination at the end of the block.

    Raises:
        InputError: Somebody has put something there meanwhile.
    """
    target = destination.resolve()  # a link to an empty folder stays
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = False
    try:
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
        with suppress(OSError):  # another process may have written there
            for folder in () if kept else missing:
                folder.rmdir()


def _move(stage: Path, destination: Path) -> None:
    """Put a folder in the place of one that is absent or empty but for git's folder."""
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
    """Move files into a folder that somebody works in: another in its place would be lost on them.

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
