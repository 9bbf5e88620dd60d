"""Files of a project are replaced all together or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from dying import Dead, dying
from rendering import commit, contents, git
from torchsmith.files import recover, swap

WRITE = ["changed.txt", "folder/new.txt", "folder/deep/er.txt"]
DELETE = ["gone/old.txt"]
BEFORE = {"changed.txt": b"before\n", "gone/old.txt": b"old\n", "kept.txt": b"kept\n"}
AFTER = {
    "changed.txt": b"after changed.txt\n",
    "folder/deep/er.txt": b"after folder/deep/er.txt\n",
    "folder/new.txt": b"after folder/new.txt\n",
    "kept.txt": b"kept\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with three files."""
    folder = filled(tmp_path / "project", BEFORE)
    commit(folder, "start")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the files that are to come."""
    return filled(tmp_path / "source", {path: AFTER[path] for path in WRITE})


def filled(folder: Path, files: dict[str, bytes]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder


def leftovers(root: Path) -> list[str]:
    return [path.name for path in (*root.glob(".git/torchsmith*"), *root.glob(".torchsmith*"))]


def test_all_of_it(root: Path, source: Path) -> None:
    (source / "folder" / "new.txt").chmod(0o755)
    swap(root, source, write=WRITE, delete=DELETE)
    assert contents(root) == AFTER
    assert os.access(root / "folder" / "new.txt", os.X_OK)
    assert not (root / "gone").exists()
    assert leftovers(root) == []


def test_none_of_it_after_an_exception(root: Path, source: Path) -> None:
    def fail() -> None:
        (root / "kept.txt").write_bytes(b"staged\n")
        git(root, "add", "kept.txt")
        (root / "kept.txt").write_bytes(b"kept\n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swap(root, source, write=WRITE, delete=DELETE, last=fail)
    assert contents(root) == BEFORE
    assert not (root / "folder").exists()
    assert git(root, "status", "--porcelain") == ""
    assert leftovers(root) == []


def test_none_of_it_where_a_file_cannot_be_written(root: Path, source: Path) -> None:
    (root / "folder").write_bytes(b"a file where a folder is needed\n")
    commit(root, "in the way")
    with pytest.raises(OSError, match="folder"):
        swap(root, source, write=WRITE, delete=DELETE)
    assert git(root, "status", "--porcelain") == ""
    assert leftovers(root) == []


def test_none_of_it_where_a_file_is_missing(root: Path, source: Path) -> None:
    (source / "folder" / "deep" / "er.txt").unlink()
    with pytest.raises(FileNotFoundError):
        swap(root, source, write=WRITE, delete=DELETE)
    assert contents(root) == BEFORE
    assert leftovers(root) == []


@pytest.mark.parametrize("under_git", [True, False], ids=["git", "no-git"])
@pytest.mark.parametrize("count", range(1, 40))
def test_a_swap_that_was_cut_off_is_undone(
    root: Path, source: Path, count: int, under_git: bool
) -> None:
    if not under_git:
        shutil.rmtree(root / ".git")
    with dying(count, None), suppress(Dead):
        swap(root, source, write=WRITE, delete=DELETE)
    recover(root)
    # Without git the copies that were not finished yet lie in the project, until the next swap.
    there = contents(root)
    mine = {path: there[path] for path in there if not path.startswith(".torchsmith-swap/")}
    assert mine in (BEFORE, AFTER)
    if under_git:
        changed = " M changed.txt\n D gone/old.txt\n?? folder/\n"
        assert git(root, "status", "--porcelain") in ("", changed)
    swap(root, source, write=WRITE, delete=[])
    assert leftovers(root) == []
