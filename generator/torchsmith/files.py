"""Files of a project replaced by others: all of them, or none.

Everything is first written into a folder of git's, or of the project where there is no git, with a
copy of what it replaces. An exception puts that copy back at once; so does the next command after
the process or the machine died meanwhile.
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
    """Take files of ``source`` into a project, and remove others from it.

    Args:
        root: The project.
        source: The folder that has the files.
        write: Those to take, as seen from both folders.
        delete: Those to remove.
        last: What else belongs to it; it may change git's index.

    Raises:
        InputError: A folder of theirs is a link, or git's index is locked.
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
    """Write texts into a project, each at the path that it is under; as :func:`swap` does it.

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
    """Undo a swap that was cut off in the middle, and say so; without one do nothing.

    Where somebody has worked on its files since, or has committed, all stays as it is.
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
    root = Path(told["root"])  # of several projects in the repository, the one that was cut off
    now = {path: _content(root / path) for path in told["old"]}
    ours = all(now[path] in (told["old"][path], told["new"][path]) for path in now)
    if now == told["old"]:
        # It had made folders at most, or git has put everything back.
        for path in [path for path in now if now[path] is None]:
            _remove(root, path)
        outcome = ""
    elif ours and told["head"] == _head(root):
        lock = stage.parent / "index.lock"
        if lock.exists() and lock.stat().st_mtime >= journal.stat().st_mtime:
            lock.unlink()  # of a git that died with us
        _undo(stage, told)
        outcome = "and is undone"
    else:
        outcome = "and its files have changed since, so that they stay: look at git status"
    journal.unlink(missing_ok=True)
    shutil.rmtree(stage, ignore_errors=True)
    if outcome:
        print(f"torchsmith: a command was interrupted in '{root}', {outcome}", file=sys.stderr)


def _undo(stage: Path, told: dict[str, Any]) -> None:
    with suppress(FileNotFoundError):  # first: once all files are back, nothing is left to undo
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
    """The paths that have a file."""
    return [path for path, content in contents.items() if content is not None]


def _content(file: Path) -> str | None:
    """A fingerprint of a file's content; None if there is no file."""
    try:
        if file.is_symlink():
            return f"link to {file.readlink()}"
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _head(root: Path) -> str:
    """The commit of a project, or nothing."""
    try:
        return git.git(root, "rev-parse", "--verify", "HEAD").strip()
    except InputError:
        return ""


def _require_no_links(root: Path, paths: Sequence[str]) -> None:
    """Refuse to write through a link, which leads to what no copy is made of.

    Raises:
        InputError: A folder is one.
    """
    folders = {parent for path in paths for parent in Path(path).parents}
    for folder in sorted(folders - {Path()}):
        if (root / folder).is_symlink():
            raise InputError(
                f"'{root / folder}' is a link, and no file is written or removed behind one: "
                "put a folder in its place"
            )


def _require_no_lock(lock: Path) -> None:
    """Refuse to begin while another git writes the index.

    Raises:
        InputError: One does, or was killed while it did.
    """
    if lock.exists():
        raise InputError(
            "another git process uses the repository, or was killed: "
            f"wait for it, or remove '{lock}'"
        )


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
