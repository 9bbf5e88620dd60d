"""Temporary folders that are removed even if a process is killed.

A process locks each folder that it uses. The system releases the lock when the process ends. The
next process removes unlocked folders.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from platformdirs import user_cache_path

from torchsmith.errors import InputError

_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_FREE = fcntl.LOCK_EX | fcntl.LOCK_NB


@contextmanager
def scratch(place: Path | None = None, prefix: str = "torchsmith-") -> Iterator[Path]:
    """Yield an empty folder that is removed at the end, or by the next command after a kill.

    Args:
        place: The parent folder; by default the user's cache, or the system's temporary folder if
            the cache cannot be written.
        prefix: The start of its name; no other name in ``place`` may start with it.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_held(place or _cache(), prefix))
        except OSError:
            if place:
                raise
            temporary = tempfile.TemporaryDirectory(prefix=prefix)
            folder = Path(stack.enter_context(temporary))
        yield folder


def _cache() -> Path:
    folder = user_cache_path("torchsmith", appauthor=False)
    if not folder.is_absolute():
        raise FileNotFoundError(folder)  # the user has no home
    return folder / "scratch"


@contextmanager
def _held(place: Path, prefix: str) -> Iterator[Path]:
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob(f"{prefix}*"):
        with suppress(OSError), _lock(left, _FREE):
            shutil.rmtree(left, ignore_errors=True)
    with ExitStack() as stack:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            stack.callback(_remove, folder)
            with suppress(FileNotFoundError):  # if another process removed it before the lock
                stack.enter_context(_lock(folder, fcntl.LOCK_SH))
                break
        yield folder


def _remove(folder: Path) -> None:
    with uninterrupted():
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Block SIGINT, SIGTERM and SIGHUP until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _lock(folder: Path, how: int) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, how)
        if not os.path.samestat(os.fstat(handle), folder.stat()):
            raise FileNotFoundError(folder)
        yield
    finally:
        os.close(handle)


def require_writable(folder: Path) -> None:
    """Check early that files can be created in a folder.

    Raises:
        InputError: They cannot.
    """
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InputError(
            f"nothing can be written in '{folder}' ({reason}): name another place"
        ) from error
