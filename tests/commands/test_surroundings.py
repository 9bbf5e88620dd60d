"""What lies round a project: git's variables, marks and settings, a cache, hand-made answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny
from commanding import Torchsmith
from rendering import commit, contents, git
from tiny import FIRST, LINES, SECOND, conflicts, edited, files

ANSWERS, MANIFEST = ".copier-answers.yml", ".torchsmith.yml"


@pytest.mark.parametrize("mark", ["skip-worktree", "assume-unchanged"])
def test_edits_that_git_overlooks_stop_an_update(
    small: Path, torchsmith: Torchsmith, mark: str
) -> None:
    git(small, "update-index", f"--{mark}", "kept.txt")
    (small / "kept.txt").write_text("mine\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert "git overlooks changes of 'kept.txt', which could be lost: git update-index" in done.err
    assert (small / "kept.txt").read_text() == "mine\n"


def test_what_git_tells_its_hooks_is_not_for_the_command(
    small: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place in (("DIR", ""), ("INDEX_FILE", "/index"), ("OBJECT_DIRECTORY", "/objects")):
        monkeypatch.setenv(f"GIT_{name}", f"{small}/.git{place}")
    torchsmith("update", "--yes", cwd=small).passed()
    assert files(small) == SECOND


def test_a_file_may_become_a_folder_and_a_folder_a_file(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    third = {"kept.txt/inside.txt": LINES, "there": LINES, "new.txt": SECOND["new.txt"]}
    tiny.release(template, "v3.0.0", third, {})
    for version, expected in (("v2.0.0", SECOND), ("v3.0.0", third), ("v1.0.0", FIRST)):
        torchsmith("update", "--to", version, "--yes", cwd=small).passed()
        assert files(small) == expected
        git(small, "commit", "--quiet", "--message", version)
        assert git(small, "status", "--porcelain") == ""


def test_edits_of_a_file_that_becomes_a_folder_stay_beside_it(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    third = {"kept.txt/inside.txt": LINES}
    tiny.release(template, "v3.0.0", third, {})
    edited(small, "kept.txt", "line 8\n", "ours\n")
    assert torchsmith("update", "--yes", cwd=small).status == 1
    assert files(small) == {**third, "kept.txt~yours": LINES.replace("line 8", "ours")}
    assert conflicts(small) == {"kept.txt~yours": "UD"}


@pytest.mark.parametrize("line", ["moved: 5", "moved: {here.txt: [1]}"])
def test_moves_that_were_written_by_hand_are_refused(
    small: Path, torchsmith: Torchsmith, line: str
) -> None:
    text = (small / MANIFEST).read_text().splitlines()
    kept = [each for each in text if not each.startswith("moved:")]
    (small / MANIFEST).write_text("\n".join([*kept, line, ""]))
    commit(small, "edited")
    before = contents(small)
    torchsmith("update", "--yes", cwd=small).refused(f"{MANIFEST} in '{small}' was edited")
    assert contents(small) == before


def test_a_repository_that_git_refuses_is_not_taken_for_none(
    small: Path, torchsmith: Torchsmith
) -> None:
    (small / ".git" / "config").write_text("[core\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert done.err.startswith(f"torchsmith: git refuses '{small}', bad config line 1")
