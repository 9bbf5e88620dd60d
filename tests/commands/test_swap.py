"""Files of a project are replaced all together or not at all, even after a failure."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from dying import Dead, dying
from rendering import commit, contents, git
from torchsmith.errors import InputError
from torchsmith.files import recover, swap

WRITE = ["changed.txt", "folder/new.txt", "folder/deep/er.txt"]
DELETE = ["gone/old.txt"]
MOMENTS = 40
"""More than the number of a swap's file operations."""
BEFORE = {"changed.txt": b"before\n", "gone/old.txt": b"old\n", "kept.txt": b"kept\n"}
AFTER = {
    "changed.txt": b"after changed.txt\n",
    "folder/deep/er.txt": b"after folder/deep/er.txt\n",
    "folder/new.txt": b"after folder/new.txt\n",
    "kept.txt": b"kept\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with three files."""
    folder = filled(tmp_path / "project", BEFORE)
    commit(folder, "start")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with the new files."""
    return filled(tmp_path / "source", {path: AFTER[path] for path in WRITE})


def filled(folder: Path, files: dict[str, bytes]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder


def leftovers(root: Path) -> list[str]:
    return [path.name for path in (*root.glob(".git/torchsmith*"), *root.glob(".torchsmith*"))]


def test_swap_writes_and_deletes_all_files(root: Path, source: Path) -> None:
    (source / "folder" / "new.txt").chmod(0o755)
    swap(root, source, write=WRITE, delete=DELETE)
    assert contents(root) == AFTER
    assert os.access(root / "folder" / "new.txt", os.X_OK)
    assert not (root / "gone").exists()
    assert leftovers(root) == []


@pytest.mark.parametrize("how", ["killed", "killed without git", "refused", "interrupted"])
@pytest.mark.parametrize("moment", range(1, MOMENTS))
def test_an_interrupted_swap_is_complete_or_undone(
    root: Path, source: Path, moment: int, how: str
) -> None:
    under_git = how != "killed without git"
    if not under_git:
        shutil.rmtree(root / ".git")
    ends = {"refused": OSError(errno.ENOSPC, "full"), "interrupted": KeyboardInterrupt()}

    def stage() -> None:
        if under_git:
            git(root, "add", "--all")

    with dying(moment, ends.get(how)), suppress(Dead, *map(type, ends.values())):
        swap(root, source, write=WRITE, delete=DELETE, last=stage)
    if how not in ends:
        recover(root)
    # Without git, unfinished copies stay in the project until the next swap.
    there = contents(root)
    mine = {path: there[path] for path in there if not path.startswith(".torchsmith-swap/")}
    assert mine in (BEFORE, AFTER)
    if under_git:
        staged = "M  changed.txt\nA  folder/deep/er.txt\nA  folder/new.txt\nD  gone/old.txt\n"
        assert git(root, "status", "--porcelain") == (staged if mine == AFTER else "")
    swap(root, source, write=WRITE, delete=[])
    assert leftovers(root) == []


def kill_during_swap(root: Path, source: Path) -> None:
    """Kill a swap after it has written its files and changed git's index."""

    def die() -> None:
        git(root, "add", "--all")
        os.kill(os.getpid(), signal.SIGKILL)

    if (child := os.fork()) == 0:
        swap(root, source, write=WRITE, delete=DELETE, last=die)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert (root / ".git" / "torchsmith" / "journal").exists()


@pytest.mark.parametrize("count", range(1, 25))
def test_an_interrupted_recovery_can_be_repeated(root: Path, source: Path, count: int) -> None:
    kill_during_swap(root, source)
    with dying(count, None), suppress(Dead):
        recover(root)
    recover(root)
    assert contents(root) == BEFORE
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "not-reset"])
def test_recovery_keeps_changes_made_after_an_interrupted_swap(
    root: Path, source: Path, reset: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Committed, staged and unstaged changes are kept."""
    kill_during_swap(root, source)
    if reset:
        git(root, "reset", "--quiet", "--hard")
        git(root, "clean", "--quiet", "--force", "-d")
    (root / "changed.txt").write_text("committed\n")
    commit(root, "work")
    (root / "changed.txt").write_text("not committed\n")
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    before, status = contents(root), git(root, "status", "--porcelain")
    recover(root)
    assert contents(root) == before
    assert git(root, "status", "--porcelain") == status
    assert "its files have changed since" in capsys.readouterr().err
    assert leftovers(root) == []


def test_recovery_keeps_committed_files_of_an_interrupted_swap(root: Path, source: Path) -> None:
    kill_during_swap(root, source)
    commit(root, "whatever there was")
    recover(root)
    assert contents(root) == AFTER
    assert git(root, "status", "--porcelain") == ""


def test_swap_is_refused_if_another_git_process_has_the_lock(root: Path, source: Path) -> None:
    lock = root / ".git" / "index.lock"
    lock.write_text("another's")
    with pytest.raises(InputError, match="another git process uses the repository"):
        swap(root, source, write=WRITE, delete=DELETE)
    assert (contents(root), lock.read_text()) == (BEFORE, "another's")


def test_a_second_swap_waits_for_the_first(
    root: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun, begin = os.pipe()

    def last() -> None:
        os.write(begin, b"begun")
        time.sleep(1)

    if (child := os.fork()) == 0:
        with suppress(BaseException):
            swap(root, source, write=WRITE, delete=DELETE, last=last)
            os._exit(0)
        os._exit(1)
    os.read(begun, 5)
    swap(root, source, write=["changed.txt"])
    assert os.waitpid(child, 0)[1] == 0
    assert (contents(root), capsys.readouterr().err) == (AFTER, "")


def test_swap_refuses_paths_behind_a_symbolic_link(
    root: Path, source: Path, tmp_path: Path
) -> None:
    outside = filled(tmp_path / "outside", {"new.txt": b"precious\n", "old.txt": b"precious\n"})
    (root / "folder").symlink_to(outside)
    shutil.rmtree(root / "gone")
    (root / "gone").symlink_to(outside)
    for write, delete in ((WRITE, []), (["changed.txt"], DELETE)):
        with pytest.raises(InputError, match="is a link, and no file is written or removed"):
            swap(root, source, write=write, delete=delete)
    assert contents(outside) == {"new.txt": b"precious\n", "old.txt": b"precious\n"}
    assert (root / "changed.txt").read_bytes() == BEFORE["changed.txt"]


def swap_or_undo(
    root: Path, source: Path, write: Sequence[str], delete: Sequence[str], *, fails: bool
) -> None:
    """Swap files. If it ``fails``, its last step raises, so it is undone."""

    def last() -> None:
        if fails:
            raise OSError("no")

    with suppress(OSError):
        swap(root, source, write=write, delete=delete, last=last)


@pytest.mark.parametrize("fails", [False, True], ids=["done", "undone"])
@pytest.mark.parametrize("turn", ["file-to-folder", "folder-to-file"])
def test_swap_replaces_a_file_by_a_folder_and_a_folder_by_a_file(
    tmp_path: Path, turn: str, fails: bool
) -> None:
    sides = {"thing": b"file\n"}, {"thing/inside.txt": b"in a folder\n"}
    before, after = sides if turn == "file-to-folder" else sides[::-1]
    root, source = filled(tmp_path / "root", before), filled(tmp_path / "source", after)
    commit(root, "start")

    swap_or_undo(root, source, [*after], [*before], fails=fails)
    assert contents(root) == (before if fails else after)


@pytest.fixture
def other_file_system(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make git's folder one of another file system than the project's."""

    def replace(file: Path, target: Path) -> Path:
        inside = root / ".git"
        if file.is_relative_to(inside) != target.is_relative_to(inside):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(file))
        return file.rename(target)

    monkeypatch.setattr(Path, "replace", replace)


@pytest.mark.usefixtures("other_file_system")
@pytest.mark.parametrize("fails", [False, True], ids=["done", "undone"])
def test_swap_copies_from_another_file_system(root: Path, source: Path, fails: bool) -> None:
    swap_or_undo(root, source, WRITE, DELETE, fails=fails)
    assert contents(root) == (BEFORE if fails else AFTER)
    assert leftovers(root) == []


@pytest.mark.usefixtures("other_file_system")
def test_recovery_removes_an_unfinished_copy(root: Path, source: Path) -> None:
    kill_during_swap(root, source)
    for folder in (root, root / "folder"):
        (folder / ".torchsmith-part").write_bytes(b"half")
    recover(root)
    assert contents(root) == BEFORE


@pytest.mark.parametrize("fails", [False, True], ids=["done", "undone"])
def test_swap_replaces_an_empty_folder_by_a_file(root: Path, source: Path, fails: bool) -> None:
    (root / "folder" / "new.txt" / "empty").mkdir(parents=True)

    swap_or_undo(root, source, WRITE, DELETE, fails=fails)
    assert contents(root) == (BEFORE if fails else AFTER)
    assert leftovers(root) == []


def test_swap_is_undone_where_a_folder_with_files_stands(root: Path, source: Path) -> None:
    mine = filled(root, {"folder/new.txt/mine.txt": b"mine\n"})
    before = contents(mine)
    with pytest.raises(OSError, match="Directory not empty"):
        swap(root, source, write=WRITE, delete=DELETE)
    assert contents(root) == before
    assert leftovers(root) == []


def test_recovery_keeps_content_staged_after_an_interrupted_swap(root: Path, source: Path) -> None:
    kill_during_swap(root, source)
    (root / "kept.txt").write_text("staged\n")
    git(root, "add", "kept.txt")
    (root / "kept.txt").write_text("not staged\n")
    recover(root)
    assert git(root, "status", "--porcelain") == "MM kept.txt\n"
    assert git(root, "show", ":kept.txt") == "staged\n"
    assert contents(root) == {**BEFORE, "kept.txt": b"not staged\n"}


@pytest.mark.parametrize("text", ["", "{", "{}", "[]"])
def test_a_broken_journal_is_refused_with_the_folder_to_remove(root: Path, text: str) -> None:
    stage = root / ".git" / "torchsmith"
    stage.mkdir()
    (stage / "journal").write_text(text)
    with pytest.raises(InputError, match=f"is broken: .* remove the folder '{stage}'"):
        recover(root)
