"""The environment of a project: git variables, marks and settings, caches, edited answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny
from commanding import Torchsmith
from rendering import commit, contents, git
from tiny import FIRST, LINES, SECOND, conflicts, edited, files
from torchsmith.files import swap
from torchsmith.git import Conflict, GitError, ScratchRepository, stage
from torchsmith.render import Job, render

ANSWERS, MANIFEST = ".copier-answers.yml", ".torchsmith.yml"


def with_settings(folder: Path, *settings: str) -> None:
    """Check out all files again with some git settings."""
    for setting in settings:
        git(folder, "config", *setting.split("="))
    git(folder, "rm", "-r", "--quiet", "--cached", ".")
    git(folder, "reset", "--quiet", "--hard")


def windows(folder: Path) -> None:
    with_settings(folder, "core.autocrlf=true")
    assert b"\r\n" in (folder / "kept.txt").read_bytes()


def windows_by_attributes(folder: Path) -> None:
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("*.txt text eol=crlf\n")
    with_settings(folder)
    assert b"\r\n" in (folder / "kept.txt").read_bytes()


def no_modes(folder: Path) -> None:
    with_settings(folder, "core.fileMode=false")
    for file in folder.glob("*.txt"):
        file.chmod(0o755)


def no_prefixes(folder: Path) -> None:
    with_settings(folder, "diff.noprefix=true", "diff.mnemonicPrefix=true", "core.quotePath=false")


@pytest.mark.parametrize("set_up", [windows, windows_by_attributes, no_modes, no_prefixes])
def test_git_settings_do_not_cause_or_hide_edits(
    set_up: Callable[[Path], None], small: Path, torchsmith: Torchsmith
) -> None:
    """The template of this project has no .gitattributes, like other templates."""
    set_up(small)

    def edits() -> list[str]:
        found = torchsmith("doctor", "--drift", "--json", cwd=small).json["drift"]["differences"]
        return [f"{row['yours']} {row['path']}" for row in found if row["yours"]]

    assert git(small, "status", "--porcelain") == ""
    assert torchsmith("diff", cwd=small).passed().out == ""
    assert edits() == []
    kept = small / "kept.txt"
    kept.write_bytes(kept.read_bytes().replace(b"line 8", b"ours"))
    assert edits() == ["edited kept.txt"]
    shown = torchsmith("diff", cwd=small).passed().out
    assert [line for line in shown.splitlines() if line[0] in "+-"] == [
        "--- a/kept.txt", "+++ b/kept.txt", "-line 8", "+ours",
    ]  # fmt: skip
    commit(small, "edited")
    for _ in range(2):
        torchsmith("preview", cwd=small).passed()
        assert git(small, "status", "--porcelain") == ""
    torchsmith("update", "--yes", cwd=small).passed()
    git(small, "commit", "--quiet", "--message", "updated")
    assert git(small, "status", "--porcelain") == ""
    assert git(small, "show", "HEAD:kept.txt") == SECOND["kept.txt"].replace("line 8", "ours")
    assert edits() == ["edited kept.txt"]


def test_an_update_ignores_a_missing_order_of_files(
    small: Path, torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings"
    settings.write_text("[diff]\norderFile = none\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    torchsmith("update", "--yes", cwd=small).passed()
    assert files(small) == SECOND


def test_a_sparse_checkout_is_compared_and_updated_as_a_whole(
    template: Path, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    """Files that are not checked out are compared as git's index has them."""
    first = {**FIRST, "docs/page.txt": LINES, "docs/other.txt": LINES}
    tiny.release(template, "v3.0.0", first, {})
    second = {**first, "docs/page.txt": LINES.replace("line 2", "line two"), "kept.txt": "new\n"}
    del second["docs/other.txt"]
    project = tmp_path / "sparse"
    render(project, Job({}, str(template), "v3.0.0"))
    commit(project, "rendered")
    edited(project, "docs/page.txt", "line 8\n", "ours\n")
    git(project, "sparse-checkout", "set", "there")
    assert not (project / "docs").exists()

    done = torchsmith("doctor", "--drift", "--json", cwd=project)
    rows = done.json["drift"]["differences"]
    assert [(row["path"], row["yours"]) for row in rows] == [("docs/page.txt", "edited")]
    shown = torchsmith("diff", cwd=project).passed().out
    assert [line for line in shown.splitlines() if line[0] in "+-"] == [
        "--- a/docs/page.txt", "+++ b/docs/page.txt", "-line 8", "+ours",
    ]  # fmt: skip
    tiny.release(template, "v4.0.0", second, {})
    torchsmith("update", "--yes", cwd=project).passed()
    git(project, "commit", "--quiet", "--message", "updated")
    git(project, "sparse-checkout", "disable")
    assert git(project, "status", "--porcelain") == ""
    ours = second["docs/page.txt"].replace("line 8", "ours")
    assert files(project) == {**second, "docs/page.txt": ours}


@pytest.mark.parametrize("mark", ["skip-worktree", "assume-unchanged"])
def test_edits_hidden_from_git_stop_an_update(
    small: Path, torchsmith: Torchsmith, mark: str
) -> None:
    git(small, "update-index", f"--{mark}", "kept.txt")
    (small / "kept.txt").write_text("mine\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert "git overlooks changes of 'kept.txt', which could be lost: git update-index" in done.err
    assert (small / "kept.txt").read_text() == "mine\n"


def hidden_by_marks(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "kept.txt")


def hidden_by_a_setting(folder: Path) -> None:
    git(folder, "rm", "--quiet", "--cached", "kept.txt")
    git(folder, "commit", "--quiet", "--message", "untracked")
    git(folder, "config", "status.showUntrackedFiles", "no")


@pytest.mark.parametrize("hide", [hidden_by_marks, hidden_by_a_setting])
def test_edits_hidden_from_git_are_not_overwritten_by_restore(
    small: Path, torchsmith: Torchsmith, hide: Callable[[Path], None]
) -> None:
    hide(small)
    (small / "kept.txt").write_text("mine\n")
    torchsmith("doctor", "--restore", "kept.txt", cwd=small).refused("has uncommitted changes")
    assert (small / "kept.txt").read_text() == "mine\n"


def test_an_edit_during_a_restore_is_not_overwritten(
    small: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap_later(*arguments: Any, **named: Any) -> None:
        (small / "kept.txt").write_text("mine\n")
        swap(*arguments, **named)

    monkeypatch.setattr("torchsmith.drift.swap", swap_later)
    torchsmith("doctor", "--restore", "kept.txt", cwd=small).refused("has uncommitted changes")
    assert (small / "kept.txt").read_text() == "mine\n"


def test_edits_hidden_from_git_are_not_rendered(
    template: Path, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    git(template, "update-index", "--skip-worktree", "template/kept.txt")
    (template / "template" / "kept.txt").write_text("hidden\n")
    out = tmp_path / "out"
    torchsmith("new", str(out), "--defaults", "--template", str(template)).passed()
    assert files(out) == SECOND


@pytest.mark.parametrize("name", ["two\nlines", os.fsdecode(b"\xff"), "a b ", 'a"b\\c', "\u00fc"])
def test_a_project_may_be_in_a_folder_of_any_name(
    name: str, small: Path, torchsmith: Torchsmith
) -> None:
    folder = small.rename(small.with_name(name))
    assert torchsmith("doctor", "--drift", cwd=folder).status == 4
    torchsmith("update", "--yes", cwd=folder).passed()
    assert (folder / "there" / "it-is.txt").read_text() == SECOND["there/it-is.txt"]


def test_git_variables_of_a_hook_do_not_affect_the_command(
    small: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place in (("DIR", ""), ("INDEX_FILE", "/index"), ("OBJECT_DIRECTORY", "/objects")):
        monkeypatch.setenv(f"GIT_{name}", f"{small}/.git{place}")
    torchsmith("update", "--yes", cwd=small).passed()
    assert files(small) == SECOND


def test_an_update_replaces_a_file_by_a_folder_and_a_folder_by_a_file(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    third = {"kept.txt/inside.txt": LINES, "there": LINES, "new.txt": SECOND["new.txt"]}
    tiny.release(template, "v3.0.0", third, {})
    for version, expected in (("v2.0.0", SECOND), ("v3.0.0", third), ("v1.0.0", FIRST)):
        torchsmith("update", "--to", version, "--yes", cwd=small).passed()
        assert files(small) == expected
        git(small, "commit", "--quiet", "--message", version)
        assert git(small, "status", "--porcelain") == ""


def test_edits_of_a_file_that_becomes_a_folder_are_kept_as_a_conflict(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    third = {"kept.txt/inside.txt": LINES}
    tiny.release(template, "v3.0.0", third, {})
    edited(small, "kept.txt", "line 8\n", "ours\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 1
    assert done.err == "Move your edits of kept.txt~yours to other files, then git rm them.\n"
    assert files(small) == {**third, "kept.txt~yours": LINES.replace("line 8", "ours")}
    assert conflicts(small) == {"kept.txt~yours": "UD"}


@pytest.mark.parametrize("line", ["moved: 5", "moved: {here.txt: [1]}"])
def test_edited_moves_in_the_manifest_are_refused(
    small: Path, torchsmith: Torchsmith, line: str
) -> None:
    text = (small / MANIFEST).read_text().splitlines()
    kept = [each for each in text if not each.startswith("moved:")]
    (small / MANIFEST).write_text("\n".join([*kept, line, ""]))
    commit(small, "edited")
    before = contents(small)
    torchsmith("update", "--yes", cwd=small).refused(f"{MANIFEST} in '{small}' was edited")
    assert contents(small) == before


def test_a_broken_git_repository_is_reported(small: Path, torchsmith: Torchsmith) -> None:
    (small / ".git" / "config").write_text("[core\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert done.err.startswith(f"torchsmith: git refuses '{small}', bad config line 1")


def test_a_conflict_that_cannot_be_staged_is_reported(small: Path, tmp_path: Path) -> None:
    repository = ScratchRepository(tmp_path / "scratch", small)
    absent = Conflict("kept.txt", 2, ("100644", f"{1:040}"))
    with pytest.raises(GitError):
        stage(small, [], [absent], repository)
