"""Folders and files whose contents are run later: only this user and root can have written them."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import warnings
from pathlib import Path


def private_folder(path: Path) -> Path:
    """Return the folder, which is made, with those above it, for this user alone.

    Raises:
        PermissionError: it is another user's, or others may write there.
        OSError: it cannot be made.
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
    """Return :func:`private_folder`, or with a warning another folder for as long as this process."""
    try:
        return private_folder(path)
    except OSError as error:
        return _temporary(str(error))


def read_private(path: Path) -> bytes | None:
    """Return what a file holds, or None if there is none or others may have written it."""
    try:
        with path.open("rb") as file:
            return file.read() if _is_private(os.fstat(file.fileno())) else None
    except OSError:
        return None


def keep(path: Path, contents: bytes) -> None:
    """Write a file atomically, also if other processes write it."""
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
