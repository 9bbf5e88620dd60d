"""Files of a project replaced by others: all of them, or none.

Everything is first written into a folder of git's, or of the project where there is no git, with a
copy of what it replaces. An exception puts that copy back at once; so does the next command after
the process or the machine died meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from torchsmith import cache, git
from torchsmith.errors import InputError

_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def swap(
    root: Path,
    source: Path,
    *,
    write: Sequence[str],
    delete: Sequence[str] = (),
    last: Callable[[], None] = lambda: None,
) -> None:
    """Take files of ``source`` into a project, and remove others from it.

    Args:
        root: The project.
        source: The folder that has the files.
        write: Those to take, as seen from both folders.
        delete: Those to remove.
        last: What else belongs to it; it may change git's index.

    Raises:
        OSError: The files cannot be written; nothing has changed.
    """
    stage = _stage(root)
    with _alone(stage.parent):
        _undo(stage)
        _swap(root, source, stage, write, delete, last)


def write_texts(root: Path, texts: dict[str, str]) -> None:
    """Write texts into a project, each at the path that it is under; as :func:`swap` does it.

    Raises:
        OSError: The files cannot be written; nothing has changed.
    """
    with cache.scratch() as scratch:
        for path, text in texts.items():
            file = scratch / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        swap(root, scratch, write=[*texts])


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, or are both absent."""
    if not one.is_file() or not other.is_file():
        return one.is_file() == other.is_file()
    return one.read_bytes() == other.read_bytes()


def _swap(
    root: Path, source: Path, stage: Path, write: Sequence[str], delete: Sequence[str],
    last: Callable[[], None],
) -> None:  # fmt: skip
    try:
        _copy(source, stage / "new", write)
        replaced = [path for path in (*write, *delete) if os.path.lexists(root / path)]
        _copy(root, stage / "old", replaced)
        if (stage.parent / "index").exists():
            _copy(stage.parent, stage, ["index"])
        journal = {"root": str(root), "paths": [*write, *delete], "replaced": replaced}
        (stage / "journal.part").write_text(json.dumps(journal), "utf-8")
        with _uninterrupted():
            (stage / "journal.part").rename(stage / "journal")
            try:
                for path in write:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (stage / "new" / path).replace(root / path)
                for path in delete:
                    _remove(root, path)
                last()
                (stage / "journal").unlink()
            except BaseException:
                _undo(stage)
                raise
    finally:
        if not (stage / "journal").exists():
            shutil.rmtree(stage, ignore_errors=True)


def recover(root: Path) -> None:
    """Undo a swap that was cut off in the middle; without one do nothing."""
    stage = _stage(root)
    if (stage / "journal").exists():
        with _alone(stage.parent):
            _undo(stage)


def _undo(stage: Path) -> None:
    journal = stage / "journal"
    if not journal.exists():
        return
    told = json.loads(journal.read_text("utf-8"))
    root = Path(told["root"])  # of several projects in the repository, the one that was cut off
    for path in told["paths"]:
        if path not in told["replaced"]:
            _remove(root, path)
        elif os.path.lexists(stage / "old" / path):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / "old" / path).replace(root / path)
    (stage.parent / "index.lock").unlink(missing_ok=True)  # of a git that died with us
    with suppress(FileNotFoundError):
        (stage / "index").replace(stage.parent / "index")
    journal.unlink()
    shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process swaps in this repository: what it does is not cut off."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _stage(root: Path) -> Path:
    try:
        return Path(git.git(root, "rev-parse", "--absolute-git-dir").strip()) / "torchsmith"
    except InputError:
        return root / ".torchsmith-swap"


def _copy(source: Path, target: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / path, target / path, follow_symlinks=False)


def _remove(root: Path, path: str) -> None:
    """Remove a file, and the folders that it leaves empty."""
    with suppress(FileNotFoundError, NotADirectoryError):
        (root / path).unlink()
    for folder in (root / path).parents:
        if folder == root:
            return
        try:
            folder.rmdir()
        except OSError:
            return


@contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
