"""Writes a new project into its folder: completely, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchsmith.errors import InputError
from torchsmith.files import alone
from torchsmith.scratch import require_writable, scratch

STAGE = ".torchsmith-new-"
"""The start of the names of folders for unfinished projects."""


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
    for entry in destination.iterdir() if destination.is_dir() else ():
        if entry.name != ".git" and not entry.name.startswith(STAGE):
            raise InputError(f"'{destination}' is not empty: name a new folder")


@contextmanager
def made(destination: Path) -> Iterator[Path]:
    """Yield the path of a folder to create; it becomes the destination at the end of the block.

    A folder that exists is kept and filled: it may be a mount point or the user's current folder,
    and its parent may be closed to writing. The new files take its group.

    Raises:
        InputError: The destination has files at the end of the block.
    """
    target = destination.resolve()  # a link to an empty folder stays
    missing = [folder for folder in target.parents if not folder.exists()]
    filled = target.is_dir()
    kept = False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch(target if filled else target.parent, STAGE) as folder:
            stage = folder / target.name
            yield stage
            try:
                _fill(destination, stage) if filled else stage.replace(target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise InputError(f"'{destination}' is not empty: name a new folder") from error
        kept = True
    finally:
        for folder in () if kept else missing:
            with suppress(OSError):  # another process may have written there
                folder.rmdir()


def _fill(destination: Path, stage: Path) -> None:
    """Move files into a folder.

    Raises:
        InputError: Something is in the folder.
    """
    moved: list[Path] = []
    with alone(destination):
        _require_empty(destination)
        try:
            for entry in list(stage.iterdir()):
                moved.append(entry.rename(destination / entry.name))
        except BaseException:
            for entry in moved:
                entry.rename(stage / entry.name)
            raise
