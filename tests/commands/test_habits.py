"""Updates of projects that users have changed with git and an editor."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from commanding import Torchsmith
from rendering import Renderer, commit, contents, git
from terminal import Terminal
from torchsmith.project import Project
from torchsmith.template import REPOSITORY, TAG
from torchsmith.update import newest

ANSWERS = ".copier-answers.yml"


def test_a_second_update_reports_nothing_to_do_and_writes_no_file(
    small: Path, torchsmith: Torchsmith
) -> None:
    torchsmith("update", "--yes", cwd=small).passed()
    git(small, "commit", "--quiet", "--message", "updated")
    assert git(small, "status", "--porcelain") == ""

    def times() -> dict[Path, int]:
        """Return when each file was written, except objects, whose times git updates."""
        every = {path: path.lstat().st_mtime_ns for path in small.rglob("*")}
        return {path: 0 if "objects" in path.parts else time for path, time in every.items()}

    before = times()
    for _ in range(2):
        done = torchsmith("update", "--yes", cwd=small).passed()
        assert done.out == "Nothing to do: project has all of v2.0.0 with these answers.\n"
        assert times() == before


def test_an_update_with_an_older_git_is_refused_in_one_sentence(small: Path, torchsmith: Torchsmith,
                                              tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    real = shutil.which("git")
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    says = 'if [ "$5" = version ]; then echo git version 2.34.1; exit; fi'
    old.write_text(f'#!/bin/sh\n{says}\nexec {real} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    assert torchsmith("update", "--yes", cwd=small).refused() == (
        "updates need git 2.38 or newer, and this is git 2.34.1: update it"
    )


# Answers, features and names.


@pytest.mark.parametrize(
    ("key", "value", "says", "command"),
    [
        ("preset", '"full"', "preset is full there, but the project was rendered with custom",
         "torchsmith update --to current -d preset=full"),
        ("backend_name", '"bar"', "backend_name is bar", "-d backend_name=bar"),
        ("vendor", '"Other"', "vendor is Other", "-d vendor=Other"),
        ("foo", '"bar"', "foo is bar there, but the project was rendered without it: restore it",
         "restore it with git\n"),
        ("features", '["amp", "rng"]', "features is [amp, rng] there", "-d 'features=[amp, rng]'"),
    ],
)  # fmt: skip
def test_answers_that_were_edited_by_hand_are_refused(
    key: str, value: str, says: str, command: str, project: Path, torchsmith: Torchsmith
) -> None:
    file = project / ANSWERS
    lines = [
        line for line in file.read_text("utf-8").splitlines() if not line.startswith(f"{key}:")
    ]
    file.write_text("\n".join([*lines, f"{key}: {value}\n"]))
    commit(project, "answers")
    before = contents(project)
    for arguments in (["update", "--yes"], ["add", "storage", "--yes"], ["preview"]):
        torchsmith(*arguments, cwd=project).refused(says, command)
    assert contents(project) == before


def test_user_files_in_folders_of_a_removed_feature_are_named(
    project: Path, torchsmith: Torchsmith
) -> None:
    (project / "csrc" / "amp" / "mine.cpp").write_text("// mine\n")
    commit(project, "mine")
    shown = torchsmith("preview", "--remove", "amp", "--json", cwd=project)
    says = "is yours, stays where amp was, and is still compiled"
    assert shown.json["own"] == {"csrc/amp/mine.cpp": says}
    done = torchsmith("remove", "amp", "--yes", cwd=project).passed()
    assert f"! csrc/amp/mine.cpp {says}" in done.out
    assert (project / "csrc" / "amp" / "mine.cpp").read_text() == "// mine\n"


def test_renaming_the_backend_moves_edits_and_user_files(
    project: Path, torchsmith: Torchsmith, render: Renderer
) -> None:
    with (project / "python" / "torch_foo" / "memory.py").open("a") as file:
        file.write("# ours\n")
    (project / "python" / "torch_foo" / "own.py").write_text("x = 1\n")
    git(project, "mv", "python/torch_foo/_compat.py", "python/torch_foo/own_compat.py")
    commit(project, "edited")
    done = torchsmith(
        "update", "--to", "current", "-d", "backend_name=bar", "-d", "display_name=Bar",
        "-d", "description=PyTorch on Bar devices", "--yes", cwd=project,
    ).passed()  # fmt: skip
    for name in ("own.py", "own_compat.py"):
        assert f"python/torch_foo/{name} follow it to python/torch_bar/{name}" in done.out
    expected = contents(render(features=["amp"], backend_name="bar"))
    expected["python/torch_bar/memory.py"] += b"# ours\n"
    expected["python/torch_bar/own.py"] = b"x = 1\n"
    expected["python/torch_bar/own_compat.py"] = expected.pop("python/torch_bar/_compat.py")
    assert sorted(contents(project)) == sorted(expected)
    assert contents(project) == expected


# Differences from the template.


def test_diff_shows_what_the_user_changed(project: Path, torchsmith: Torchsmith) -> None:
    assert torchsmith("diff", cwd=project).out == ""
    for path in ("README.md", "LICENSE"):
        with (project / path).open("a") as file:
            file.write("ours\n")
    (project / "NOTICE").write_text("ours alone\n")
    commit(project, "edited")
    (project / "CHANGELOG.md").unlink()
    done = torchsmith("diff", cwd=project).passed()
    assert done.out.count("\n+ours\n") == 2
    assert "\n+++ /dev/null\n" in done.out
    assert "NOTICE" not in done.out
    done = torchsmith("diff", "README.md", cwd=project / "csrc")
    assert done.out.count("\n+ours\n") == 1
    torchsmith("diff", "NOTICE", cwd=project).refused("the template has no file 'NOTICE'")


def test_diff_works_with_a_missing_pager(project: Path) -> None:
    edited = project / "README.md"
    edited.write_text("ours\n")
    variables = {"PAGER": "no-such-pager", "LESS": "FRX"}
    terminal = Terminal("diff", "README.md", cwd=project, lines=400, variables=variables)
    terminal.wait_for("+ours")
    terminal.type("q")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("version", "expected"),
    [("v0.0.1", TAG), (TAG, TAG), ("v99.0.0", "v99.0.0"), ("vfoo", "HEAD"), ("1234567", "HEAD")],
)
def test_an_installed_release_updates_to_itself_unless_the_project_is_newer(
    version: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchsmith.update.is_release", lambda: True)
    monkeypatch.setattr("torchsmith.update.releases", lambda _: ["v0.0.1"])
    assert newest(Project(tmp_path, {}, REPOSITORY, version)) == expected
