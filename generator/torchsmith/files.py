"""Replaces files of a project: all of them, or none.

New files and copies of the old ones are first written to a folder in `.git`, or in the project if
it is not under git. An exception restores the old files at once. If the process or the machine
dies, the next command restores them.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torchsmith import git
from torchsmith.errors import InputError
from torchsmith.scratch import scratch, uninterrupted

PART = ".torchsmith-part"
"""The name of an unfinished copy from another file system."""


def swap(
    root: Path,
    source: Path,
    *,
    write: Sequence[str],
    delete: Sequence[str] = (),
    first: Callable[[], None] = lambda: None,
    last: Callable[[], None] = lambda: None,
) -> None:
    """Copy files of ``source`` into a project, and delete others from it.

    Args:
        root: The project.
        source: The folder that has the files.
        write: Paths to write, relative to both folders.
        delete: Paths to delete.
        first: Called before the swap, while no other command changes the project; it may raise.
        last: Called at the end, as part of the swap; it may change git's index.

    Raises:
        InputError: A parent folder of a path is a link, or git's index is locked.
        OSError: The files cannot be written; nothing has changed.
    """
    with _ready(root) as stage:
        first()
        _swap(root, source, stage, write, delete, last)


def write_texts(root: Path, texts: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Write texts into a project as :func:`swap` does, and return them.

    Args:
        root: The project.
        texts: Returns the texts by path; called while no other command changes the project.

    Raises:
        OSError: The files cannot be written; nothing has changed.
    """
    with scratch() as temporary, _ready(root) as stage:
        written = texts()
        for path, text in written.items():
            file = temporary / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        _swap(root, temporary, stage, [*written], (), lambda: None)
    return written


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, or are both absent."""
    if not one.is_file() or not other.is_file():
        return one.is_file() == other.is_file()
    return one.read_bytes() == other.read_bytes()


def _swap(
    root: Path, source: Path, stage: Path, write: Sequence[str], delete: Sequence[str],
    last: Callable[[], None],
) -> None:  # fmt: skip
    _require_no_links(root, [*write, *delete])
    under_git = stage.parent != root
    if under_git:
        _require_no_lock(stage.parent / "index.lock")
    try:
        _copy(source, stage / "new", write)
        old = {path: _content(root / path) for path in (*write, *delete)}
        _copy(root, stage / "old", _there(old))
        journal = {
            "root": str(root),
            "head": _head(root),
            "index": git.entries(root, old) if under_git else None,
            "old": old,
            "new": {path: _content(stage / "new" / path) for path in old},
        }
        with (stage / "journal.part").open("w", encoding="utf-8") as file:
            json.dump(journal, file)
            file.flush()
            os.fsync(file.fileno())
        with uninterrupted():
            (stage / "journal.part").rename(stage / "journal")
            try:
                for path in delete:  # first: a folder may take the place of a file
                    _remove(root, path)
                for path in write:
                    _put(stage / "new" / path, root / path)
                last()
                (stage / "journal").unlink()
            except BaseException:
                _undo(stage, journal)
                raise
    finally:
        if not (stage / "journal").exists():
            shutil.rmtree(stage, ignore_errors=True)


def recover(root: Path) -> None:
    """Undo an interrupted swap, and print that; do nothing if there is none.

    If one of its files or the last commit has changed since, all files stay as they are.
    """
    if (_stage(root) / "journal").exists():
        with _ready(root):
            pass


@contextmanager
def _ready(root: Path) -> Iterator[Path]:
    """Yield the folder for a swap's files, while no other process swaps in this repository."""
    stage = _stage(root)
    with alone(stage.parent):
        _recover(stage)
        yield stage


def _recover(stage: Path) -> None:
    journal = stage / "journal"
    if not journal.exists():
        return
    told = _read(journal)
    root = Path(told["root"])  # a repository may have several projects
    for path in told["old"]:
        with suppress(FileNotFoundError, NotADirectoryError):
            (root / path).with_name(PART).unlink()
    now = {path: _content(root / path) for path in told["old"]}
    ours = all(now[path] in (told["old"][path], told["new"][path]) for path in now)
    if now == told["old"]:
        # The swap had only created folders, or git has restored all files.
        for path in [path for path in now if now[path] is None]:
            _remove(root, path)
        outcome = ""
    elif ours and told["head"] == _head(root):
        lock = stage.parent / "index.lock"
        if lock.exists() and lock.stat().st_mtime >= journal.stat().st_mtime:
            lock.unlink()  # of the git that the swap ran
        _undo(stage, told)
        outcome = "and is undone"
    else:
        outcome = "and its files have changed since, so that they stay: look at git status"
    journal.unlink(missing_ok=True)
    shutil.rmtree(stage, ignore_errors=True)
    if outcome:
        print(f"torchsmith: a command was interrupted in '{root}', {outcome}", file=sys.stderr)


def _read(journal: Path) -> dict[str, Any]:
    """Read a journal.

    Raises:
        InputError: It is broken, as after a failure of the disk.
    """
    try:
        told = json.loads(journal.read_text("utf-8"))
        return {key: told[key] for key in ("root", "head", "index", "old", "new")}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"'{journal}' of an interrupted command is broken: look at git status, then remove "
            f"the folder '{journal.parent}'"
        ) from error


def _undo(stage: Path, told: Mapping[str, Any]) -> None:
    root, replaced = Path(told["root"]), _there(told["old"])
    if told["index"] is not None:
        _restore_index(stage, told)  # first: _recover stops if all files are back
    for path in told["old"].keys() - set(replaced):
        _remove(root, path)
    for path in replaced:
        if os.path.lexists(stage / "old" / path):
            _put(stage / "old" / path, root / path)
    (stage / "journal").unlink()


def _restore_index(stage: Path, told: Mapping[str, Any]) -> None:
    """Restore the swap's files in git's index, and no others; another process may lock it."""
    root = Path(told["root"])
    if git.entries(root, told["old"]) == told["index"]:
        return
    copy = stage / f"index-{os.getpid()}"
    with suppress(FileNotFoundError):
        shutil.copy2(stage.parent / "index", copy)
    git.set_entries(root, told["old"], told["index"], copy)
    copy.replace(stage.parent / "index")


def _there(contents: dict[str, str | None]) -> list[str]:
    """Return the paths that have a file."""
    return [path for path, content in contents.items() if content is not None]


def _content(file: Path) -> str | None:
    """Return a hash of a file's content, or a link's target; None if there is no file."""
    try:
        if file.is_symlink():
            return f"link to {file.readlink()}"
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _head(root: Path) -> str:
    """Return the last commit of a project, or ""."""
    try:
        return git.git(root, "rev-parse", "--verify", "HEAD").strip()
    except InputError:
        return ""


def _require_no_links(root: Path, paths: Sequence[str]) -> None:
    """Refuse to write through a link: no copy is made of files behind it.

    Raises:
        InputError: A parent folder is a link.
    """
    folders = {parent for path in paths for parent in Path(path).parents}
    for folder in sorted(folders - {Path()}):
        if (root / folder).is_symlink():
            raise InputError(
                f"'{root / folder}' is a link, and no file is written or removed behind one: "
                "put a folder in its place"
            )


def _require_no_lock(lock: Path) -> None:
    """Refuse to start while another git process locks the index.

    Raises:
        InputError: The lock exists; a killed process may have left it.
    """
    if lock.exists():
        raise InputError(
            "another git process uses the repository, or was killed: "
            f"wait for it, or remove '{lock}'"
        )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process writes in a folder, and block others meanwhile."""
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


def _put(file: Path, place: Path) -> None:
    """Move a file to a place, where an empty folder may be."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink():
        for folder, _, _ in os.walk(place, topdown=False):
            Path(folder).rmdir()
    try:
        file.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _put_a_copy(file, place)


def _put_a_copy(file: Path, place: Path) -> None:
    """Move a file to another file system; the place never has a part of it."""
    part = place.with_name(PART)
    try:
        shutil.copy2(file, part, follow_symlinks=False)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
    file.unlink()


def _remove(root: Path, path: str) -> None:
    """Remove a file, and the folders that become empty."""
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        (root / path).unlink()
    for folder in (root / path).parents:
        if folder == root:
            return
        try:
            folder.rmdir()
        except OSError:
            return
