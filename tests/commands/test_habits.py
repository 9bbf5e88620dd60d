"""What people do to a project with git and an editor, and what an update makes of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import tiny
from commanding import Torchsmith
from rendering import Renderer, commit, contents, git
from tiny import LINES, SECOND, edited, files
from torchsmith.project import Project
from torchsmith.template import REPOSITORY, TAG
from torchsmith.update import newest

ANSWERS = ".copier-answers.yml"


def in_git(project: Path, *arguments: str) -> None:
    """Do something by git, and commit it."""
    git(project, *arguments)
    commit(project, " ".join(arguments))


# Files that were renamed or deleted.


@pytest.mark.parametrize("ours", ["", "ours\n"], ids=["as it was", "edited"])
def test_a_renamed_file_takes_what_the_template_changes(
    ours: str, small: Path, torchsmith: Torchsmith
) -> None:
    in_git(small, "mv", "kept.txt", "own.txt")
    if ours:
        (small / "own.txt").write_text(LINES + ours)
        commit(small, "edited")
    shown = torchsmith("preview", cwd=small)
    assert "you renamed kept.txt; own.txt takes what the template changed in it" in shown.out
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    rest = {path: text for path, text in SECOND.items() if path != "kept.txt"}
    assert files(small) == {**rest, "own.txt": SECOND["kept.txt"] + ours}


def test_a_renamed_file_that_the_template_moved_stays_where_it_is(
    small: Path, torchsmith: Torchsmith
) -> None:
    in_git(small, "mv", "here.txt", "own.txt")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    rest = {path: text for path, text in SECOND.items() if path != "there/it-is.txt"}
    assert files(small) == {**rest, "own.txt": SECOND["there/it-is.txt"]}


def test_where_both_changed_a_line_of_a_renamed_file_it_is_a_conflict(
    small: Path, torchsmith: Torchsmith
) -> None:
    in_git(small, "mv", "kept.txt", "own.txt")
    edited(small, "own.txt", "line 2\n", "ours\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 1
    assert tiny.conflicts(small) == {"own.txt": "UU"}
    assert not (small / "kept.txt").exists()


def test_a_renamed_file_that_the_template_gave_up_is_the_users(
    small: Path, torchsmith: Torchsmith
) -> None:
    in_git(small, "mv", "gone.txt", "own.txt")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    assert "own.txt was gone.txt, which the template no longer has" in done.out
    assert files(small) == {**SECOND, "own.txt": LINES}


@pytest.mark.parametrize("path", ["kept.txt", "here.txt"])
def test_a_deleted_file_stays_away_and_is_named(
    path: str, small: Path, torchsmith: Torchsmith
) -> None:
    in_git(small, "rm", "--quiet", path)
    now = tiny.MOVED.get(path, path)
    shown = torchsmith("preview", "--json", cwd=small)
    assert shown.json["deleted"] == [now]
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    assert f"you deleted {now}, which the template changed: it stays away" in done.out
    assert files(small) == {name: text for name, text in SECOND.items() if name != now}


def test_a_deleted_file_that_did_not_change_is_not_named(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    in_git(small, "rm", "--quiet", "kept.txt")
    assert torchsmith("update", "--yes", cwd=small).status == 0
    commit(small, "updated")
    tiny.release(template, "v3.0.0", {**SECOND, "newer.txt": "newer\n"}, tiny.MOVED)
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    assert "kept.txt" not in done.out


# What git has afterwards.


def test_new_files_are_staged_and_a_commit_of_all_has_them(
    small: Path, torchsmith: Torchsmith
) -> None:
    done = torchsmith("update", "--yes", cwd=small)
    assert done.err.endswith(
        "Done, and staged. Read `git diff --cached`, rebuild, run pytest, commit.\n"
    )
    git(small, "commit", "--quiet", "--all", "--message", "updated")
    assert git(small, "status", "--porcelain") == ""
    assert git(small, "show", "HEAD:new.txt") == SECOND["new.txt"]


def test_with_conflicts_only_these_are_told(small: Path, torchsmith: Torchsmith) -> None:
    edited(small, "kept.txt", "line 2\n", "ours\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 1
    assert done.err == "Resolve the conflicts in kept.txt, then git add them.\n"
    assert git(small, "diff", "--name-only", "--diff-filter=U") == "kept.txt\n"


def test_after_a_squash_merge_the_next_update_does_not_conflict(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    edited(small, "kept.txt", "line 8\n", "line 8\nours\n")
    git(small, "switch", "--quiet", "--create", "take-it")
    assert torchsmith("update", "--yes", cwd=small).status == 0
    commit(small, "updated")
    git(small, "switch", "--quiet", "main")
    git(small, "merge", "--quiet", "--squash", "take-it")
    commit(small, "squashed")
    git(small, "branch", "--quiet", "-D", "take-it")
    newest = {**SECOND, "kept.txt": SECOND["kept.txt"].replace("line 5", "line five")}
    tiny.release(template, "v3.0.0", newest, tiny.MOVED)
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    assert files(small) == {
        **newest, "kept.txt": newest["kept.txt"].replace("line 8\n", "line 8\nours\n"),
    }  # fmt: skip


def test_with_an_older_git_it_is_one_sentence(small: Path, torchsmith: Torchsmith,
                                              tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    real = shutil.which("git")
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    says = 'if [ "$3" = version ]; then echo git version 2.34.1; exit; fi'
    old.write_text(f'#!/bin/sh\n{says}\nexec {real} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    done = torchsmith("update", "--yes", cwd=small)
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "torchsmith: updates need git 2.38 or newer, and this is git 2.34.1: update it\n"
    )


# Answers, features and names.


@pytest.mark.parametrize(
    ("key", "value", "says", "command"),
    [
        ("preset", '"full"', "preset is full there, but the project was rendered with custom",
         "torchsmith update --to current -d preset=full"),
        ("backend_name", '"bar"', "backend_name is bar", "-d backend_name=bar"),
        ("vendor", '"Other"', "vendor is Other", "-d vendor=Other"),
        ("features", '["amp", "rng"]', "features is [amp, rng] there", "-d 'features=[amp, rng]'"),
    ],
)  # fmt: skip
def test_answers_that_were_edited_by_hand_are_refused(
    key: str, value: str, says: str, command: str, project: Path, torchsmith: Torchsmith
) -> None:
    file = project / ANSWERS
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(
        f"{key}: {value}\n" if line.startswith(f"{key}:") else line for line in lines
    ))  # fmt: skip
    commit(project, "answers")
    before = contents(project)
    for arguments in (["update", "--yes"], ["add", "storage", "--yes"], ["preview"]):
        done = torchsmith(*arguments, cwd=project)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert says in done.err
        assert command in done.err
    assert contents(project) == before


def test_own_files_where_a_feature_goes_are_named(project: Path, torchsmith: Torchsmith) -> None:
    (project / "csrc" / "amp" / "mine.cpp").write_text("// mine\n")
    commit(project, "mine")
    shown = torchsmith("preview", "--remove", "amp", "--json", cwd=project)
    says = "is yours, stays where amp was, and is still compiled"
    assert shown.json["own"] == {"csrc/amp/mine.cpp": says}
    done = torchsmith("remove", "amp", "--yes", cwd=project)
    assert done.status == 0, done.err
    assert f"! csrc/amp/mine.cpp {says}" in done.out
    assert (project / "csrc" / "amp" / "mine.cpp").read_text() == "// mine\n"


def test_a_renamed_backend_takes_edits_and_own_files_along(
    project: Path, torchsmith: Torchsmith, render: Renderer
) -> None:
    with (project / "python" / "torch_foo" / "memory.py").open("a") as file:
        file.write("# ours\n")
    (project / "python" / "torch_foo" / "own.py").write_text("x = 1\n")
    commit(project, "edited")
    done = torchsmith(
        "update", "--to", "current", "-d", "backend_name=bar", "-d", "display_name=Bar",
        "-d", "description=PyTorch on Bar devices", "--yes", cwd=project,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "python/torch_foo/own.py follow it to python/torch_bar/own.py" in done.out
    expected = contents(render(features=["amp"], backend_name="bar"))
    expected["python/torch_bar/memory.py"] += b"# ours\n"
    expected["python/torch_bar/own.py"] = b"x = 1\n"
    assert sorted(contents(project)) == sorted(expected)
    assert contents(project) == expected


# How it differs.


def test_diff_shows_what_the_user_changed(project: Path, torchsmith: Torchsmith) -> None:
    assert torchsmith("diff", cwd=project).out == ""
    for path in ("README.md", "LICENSE"):
        with (project / path).open("a") as file:
            file.write("ours\n")
    (project / "NOTICE").write_text("ours alone\n")
    commit(project, "edited")
    (project / "CHANGELOG.md").unlink()
    done = torchsmith("diff", cwd=project)
    assert done.status == 0, done.err
    assert done.out.count("\n+ours\n") == 2
    assert "\n+++ /dev/null\n" in done.out
    assert "NOTICE" not in done.out
    done = torchsmith("diff", "README.md", cwd=project / "csrc")
    assert done.out.count("\n+ours\n") == 1
    done = torchsmith("diff", "NOTICE", cwd=project)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "the template has no file 'NOTICE'" in done.err


@pytest.mark.parametrize(
    ("version", "expected"),
    [("v0.0.1", TAG), (TAG, TAG), ("v99.0.0", "v99.0.0"), ("vfoo", "HEAD"), ("1234567", "HEAD")],
)
def test_an_installed_release_follows_itself_unless_the_project_is_newer(
    version: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchsmith.update.is_release", lambda: True)
    monkeypatch.setattr("torchsmith.update.releases", lambda _: ["v0.0.1"])
    assert newest(Project(tmp_path, {}, REPOSITORY, version)) == expected
