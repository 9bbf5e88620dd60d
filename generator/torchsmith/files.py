"""Replaces files of a project: all of them, or none.

New files and copies of the old ones are first written to a folder in `.git`, or in the project if
it is not under git. An exception restores the old files at once. If the process or the machine
dies, the next command restores them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torchsmith import git
from torchsmith.errors import InputError
from torchsmith.scratch import scratch, uninterrupted


def swap(
    root: Path,
    source: Path,
    *,
    write: Sequence[str],
    delete: Sequence[str] = (),
    last: Callable[[], None] = lambda: None,
) -> None:
    """Copy files of ``source`` into a project, and delete others from it.

    Args:
        root: The project.
        source: The folder that has the files.
        write: Paths to write, relative to both folders.
        delete: Paths to delete.
        last: Called at the end, as part of the swap; it may change git's index.

    Raises:
        InputError: A parent folder of a path is a link, or git's index is locked.
        OSError: The files cannot be written; nothing has changed.
    """
    stage = _stage(root)
    with _alone(stage.parent):
        _recover(stage)
        _require_no_links(root, [*write, *delete])
        if stage.parent != root:  # it is git's folder
            _require_no_lock(stage.parent / "index.lock")
        _swap(root, source, stage, write, delete, last)


def write_texts(root: Path, texts: dict[str, str]) -> None:
    """Write texts, by path, into a project with :func:`swap`.

    Raises:
        OSError: The files cannot be written; nothing has changed.
    """
    with scratch() as temporary:
        for path, text in texts.items():
            file = temporary / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        swap(root, temporary, write=[*texts])


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
        old = {path: _content(root / path) for path in (*write, *delete)}
        _copy(root, stage / "old", _there(old))
        if (stage.parent / "index").exists():
            _copy(stage.parent, stage, ["index"])
        journal = {
            "root": str(root),
            "head": _head(root),
            "old": old,
            "new": {path: _content(stage / "new" / path) for path in old},
        }
        (stage / "journal.part").write_text(json.dumps(journal), "utf-8")
        with uninterrupted():
            (stage / "journal.part").rename(stage / "journal")
            try:
                for path in delete:  # first: a folder may take the place of a file
                    _remove(root, path)
                for path in write:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (stage / "new" / path).replace(root / path)
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
    stage = _stage(root)
    if (stage / "journal").exists():
        with _alone(stage.parent):
            _recover(stage)


def _recover(stage: Path) -> None:
    journal = stage / "journal"
    if not journal.exists():
        return
    told = json.loads(journal.read_text("utf-8"))
    root = Path(told["root"])  # a repository may have several projects
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


def _undo(stage: Path, told: dict[str, Any]) -> None:
    with suppress(FileNotFoundError):  # first: _recover stops if all files are back
        (stage / "index").replace(stage.parent / "index")
    root, replaced = Path(told["root"]), _there(told["old"])
    for path in told["old"].keys() - set(replaced):
        _remove(root, path)
    for path in replaced:
        if os.path.lexists(stage / "old" / path):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / "old" / path).replace(root / path)
    (stage / "journal").unlink()


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
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process swaps in this repository, and block others meanwhile."""
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
    """Remove a file, and the folders that become empty."""
    with suppress(FileNotFoundError, NotADirectoryError):
        (root / path).unlink()
    for folder in (root / path).parents:
        if folder == root:
            return
        try:
            folder.rmdir()
        except OSError:
            return
