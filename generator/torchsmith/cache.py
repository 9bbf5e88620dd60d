"""Renders that are kept for the next command, and folders to work in that no kill leaves behind.

A process holds a lock on each folder that it uses, which the system releases when the process ends,
however it ends. What nobody holds may be removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from platformdirs import user_cache_path

LIMIT = 8
"""How many renders are kept: those that were used last."""

_FREE = fcntl.LOCK_EX | fcntl.LOCK_NB


def root() -> Path:
    """Return the folder of all that is kept, which may be absent.

    Raises:
        FileNotFoundError: The user has no home.
    """
    folder = user_cache_path("torchsmith", appauthor=False)
    if not folder.is_absolute():
        raise FileNotFoundError(folder)
    return folder


@contextmanager
def scratch(place: Path | None = None, prefix: str = "torchsmith-") -> Iterator[Path]:
    """Yield an empty folder that is removed at the end, or by the next command after a kill.

    Args:
        place: Where it is made; by default in the cache, or in the system's temporary folder where
            the cache cannot be written.
        prefix: What its name begins with; nothing else in ``place`` may begin so.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_held(place or root() / "scratch", prefix))
        except OSError:
            if place:
                raise
            temporary = tempfile.TemporaryDirectory(prefix=prefix)
            folder = Path(stack.enter_context(temporary))
        yield folder


@contextmanager
def _held(place: Path, prefix: str) -> Iterator[Path]:
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob(f"{prefix}*"):
        with suppress(OSError), hold(left, _FREE):
            shutil.rmtree(left, ignore_errors=True)
    with ExitStack() as stack:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            with suppress(FileNotFoundError):  # else another process saw it before the lock
                stack.enter_context(hold(folder))
                break
        yield folder


@contextmanager
def hold(folder: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Keep a folder from being removed by other processes; a lock stays with a renamed folder.

    Raises:
        OSError: The folder is gone, or was to be had alone and is in use.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, how)
        if not os.path.samestat(os.fstat(handle), folder.stat()):
            raise FileNotFoundError(folder)
        yield
    finally:
        os.close(handle)


@contextmanager
def kept(key: str) -> Iterator[Path | None]:
    """Yield the files that are kept under a key, to be read only, or None."""
    with ExitStack() as stack:
        found = None
        with suppress(OSError):
            entry = _entry(key)
            stack.enter_context(hold(entry))
            os.utime(entry)
            # Who cleans caches by age takes files out of the middle.
            if (entry / "listing").read_text("utf-8") == _listing(entry / "files"):
                found = entry / "files"
        if not found:
            stack.close()
        yield found


@contextmanager
def keep(key: str, made: Path) -> Iterator[Path]:
    """Keep files under a key, if that can be done, and yield where they are from now on.

    Args:
        key: What `kept` is asked for.
        made: A folder within a scratch folder, with the files in its folder ``files``.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            entry = _entry(key)
            entry.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(hold(made))
            (made / "listing").write_text(_listing(made / "files"), "utf-8")
            _drop(entry)
            made.rename(entry)  # fails where another process uses what it has kept meanwhile
            made = entry
            for old in sorted(entry.parent.iterdir(), key=_used)[:-LIMIT]:
                _drop(old)
        yield made / "files"


def _entry(key: str) -> Path:
    return root() / "renders" / hashlib.sha256(key.encode()).hexdigest()


def _listing(folder: Path) -> str:
    """The files in a folder, with their sizes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file())
    return "".join(f"{path.relative_to(folder)}\t{path.lstat().st_size}\n" for path in files)


def _used(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _drop(entry: Path) -> None:
    """Remove an entry that nobody uses. It goes at once: half of one is never under its name."""
    with suppress(OSError), hold(entry, _FREE), scratch() as bin:
        entry.rename(bin / entry.name)
