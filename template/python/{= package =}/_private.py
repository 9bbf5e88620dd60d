"""Folders and files of executable code that only this user and root can write."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import warnings
from pathlib import Path


def private_folder(path: Path) -> Path:
    """Create the folder and its missing parents with mode 0700, and return the folder.

    Raises:
        PermissionError: the folder belongs to another user, or others can write to it.
        OSError: the folder cannot be created.
    """
    missing = [each for each in path.parents if not each.exists()]
    for each in (*reversed(missing), path):
        each.mkdir(0o700, exist_ok=True)
    if not _is_private(path.stat()):
        raise PermissionError(
            f"{path} belongs to another user, or others can write to it, but its files are executed: "
            "make it private (chown, chmod 700), or name another folder"
        )
    return path


def cache_folder(path: Path) -> Path:
    """Return :func:`private_folder`, or a temporary folder of this process, with a warning."""
    try:
        return private_folder(path)
    except OSError as error:
        return _temporary(str(error))


def read_private(path: Path) -> bytes | None:
    """Return the contents of a file, or None if it does not exist or others can write to it."""
    try:
        with path.open("rb") as file:
            return file.read() if _is_private(os.fstat(file.fileno())) else None
    except OSError:
        return None


def keep(path: Path, contents: bytes) -> None:
    """Write a file atomically. Other processes may write it at the same time."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
        part.write(contents)
    Path(part.name).replace(path)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


@functools.cache
def _temporary(problem: str) -> Path:
    warnings.warn(f"compiled kernels are cached for this process only: {problem}", stacklevel=4)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
