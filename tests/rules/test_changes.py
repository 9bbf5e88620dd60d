"""What counts as changed, and so runs in the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

import changes
from rendering import commit, git


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a repository with three commits on main, each of which adds a file."""
    monkeypatch.delenv("CHANGED_SINCE", raising=False)
    origin = tmp_path / "origin"
    for name in ("one", "two", "three"):
        add(origin, f"{name}/file")
        commit(origin, name)
    git(tmp_path, "clone", "--quiet", str(origin), "clone")
    return tmp_path / "clone"


def add(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).touch()


def test_on_main_it_is_the_last_commit_and_what_is_not_committed(clone: Path) -> None:
    add(clone, "own")
    assert changes.changed(clone) == {"three/file", "own"}


def test_on_a_branch_it_is_all_of_the_branch(clone: Path) -> None:
    git(clone, "checkout", "--quiet", "-b", "branch")
    for name in ("four", "five"):
        add(clone, name)
        commit(clone, name)
    assert changes.changed(clone) == {"four", "five"}


def test_ci_says_what_it_tested_before(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHANGED_SINCE", "HEAD~2")
    assert changes.changed(clone) == {"two/file", "three/file"}
    monkeypatch.setenv("CHANGED_SINCE", "0" * 40)
    assert changes.changed(clone) == {"three/file"}


def test_where_git_knows_no_earlier_commit_all_might_have_changed(
    clone: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", clone.as_uri(), "shallow")
    assert changes.changed(tmp_path / "shallow") is None
    assert changes.concern(None, ["one"])


def test_a_folder_is_not_what_begins_like_it() -> None:
    assert changes.concern({"one/file"}, ["one"])
    assert changes.concern({"one/file"}, ["one/file"])
    assert not changes.concern({"one/file"}, ["on", "two"])
