"""`torchsmith doctor`: tools, and files changed by the user or by the template."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from commanding import Torchsmith
from rendering import Renderer, commit, contents, git
from terminal import Terminal
from torchsmith import catalog, doctor
from torchsmith.files import write_texts


def findings(report: dict[str, object]) -> dict[str, dict[str, str]]:
    rows = report["findings"]
    assert isinstance(rows, list)
    return {row["check"]: row for row in rows}


def bare_python(folder: Path) -> Path:
    """Return a Python without packages."""
    folder.mkdir(exist_ok=True)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    return python


def test_the_tools_of_this_environment_are_found(torchsmith: Torchsmith, tmp_path: Path) -> None:
    done = torchsmith("doctor", "--python", sys.executable, "--json", cwd=tmp_path)
    rows = findings(done.json)
    assert {"python", "torch", "pybind11", "C++ compiler", "cmake", "ninja", "git"} <= set(rows)
    assert rows["python"]["status"] == rows["C++ compiler"]["status"] == "ok"
    assert done.json["drift"] is None


def test_a_missing_tool_is_a_problem_with_a_fix(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    python = bare_python(tmp_path)
    done = torchsmith("doctor", "--python", str(python), "--json", cwd=tmp_path)
    assert done.status == 1
    rows = findings(done.json)
    for check in ("torch", "pybind11", "scikit-build-core", "C++ compiler"):
        assert rows[check]["status"] == "problem"
        assert rows[check]["fix"]
    tested = catalog.torch_window()["tested"]
    assert rows["torch"]["fix"] == f"{python} -m pip install torch=={tested}"


@pytest.mark.parametrize(("version", "status"), [("3.5.1", "problem"), ("3.22.1", "ok")])
def test_a_tool_that_is_too_old_is_a_problem(version: str, status: str, tmp_path: Path) -> None:
    (tmp_path / "cmake").write_text(f"#!/bin/sh\necho cmake version {version}\n")
    (tmp_path / "cmake").chmod(0o755)
    found = doctor._tool({"scripts": str(tmp_path)}, "python", "cmake", "3.22")
    assert (found.status, found.found) == (status, f"{version} ({tmp_path / 'cmake'})")


@pytest.mark.usefixtures("no_tools")
def test_drift_separates_user_edits_from_template_changes(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    """The status is 3 with edits, and 4 with only changes of the template."""
    repository, project = render.apart(tmp_path, features=["amp"])
    template = repository / "template"
    done = torchsmith("doctor", "--drift", "--json", cwd=project)
    assert (done.status, done.json["drift"]) == (
        0, {"before": "v1.0.0", "after": "v1.0.0", "differences": []},
    )  # fmt: skip

    for path in ("LICENSE.jinja", "README.md.jinja"):
        append(template / path, "theirs\n")
    (template / "docs" / "news.md").write_text("# News\n")
    (template / "docs" / "dtypes.md.jinja").unlink()
    commit(repository, "release", tag="v1.1.0")
    (project / "device" / "acme.cpp").write_text("ours alone\n")
    assert torchsmith("doctor", "--drift", cwd=project).status == 4

    for path in ("README.md", "csrc/amp/autocast.cpp", "LICENSE"):
        append(project / path, "ours\n")
    (project / "CHANGELOG.md").unlink()
    assert torchsmith("doctor", "--drift", cwd=project).status == 3
    done = torchsmith("doctor", "--json", cwd=project)
    assert done.status == 0, "edits are no problem"
    drift = done.json["drift"]
    assert (drift["before"], drift["after"]) == ("v1.0.0", "v1.1.0")
    assert {
        row["path"]: (row["part"], row["yours"], row["templates"]) for row in drift["differences"]
    } == {
        "CHANGELOG.md": ("core", "deleted", ""),
        "LICENSE": ("core", "edited", "changed"),
        "README.md": ("core", "edited", "changed"),
        "csrc/amp/autocast.cpp": ("amp", "edited", ""),
        "docs/news.md": ("core", "", "added"),
        "docs/dtypes.md": ("core", "", "deleted"),
    }
    rows = findings(done.json)
    assert rows["template"]["fix"] == "torchsmith update"
    assert rows["under git"]["status"] == "warning"
    change(project, "_src_path", str(tmp_path / "gone"))
    assert torchsmith("doctor", "--drift", cwd=project).status == 1


@pytest.mark.usefixtures("no_tools")
def test_a_narrow_terminal_splits_no_word(torchsmith: Torchsmith, project: Path) -> None:
    (project / "NEWS").write_text("ours\n")
    terminal = Terminal("doctor", "--drift", cwd=project, columns=40)
    lines = terminal.wait_for("newest version.")
    assert terminal.end() == 0
    assert lines[lines.index("All template files are those of the") + 1] == "newest version."
    assert any("1 uncommitted" in line for line in lines)
    path = "device/include/foo/device/virtual_memory.h"
    append(project / path, "ours\n")
    shown = torchsmith("doctor", "--drift", cwd=project, columns=40).out
    assert f"file: {path}\n  part: core\n  you: edited\n" in shown


def append(file: Path, text: str) -> None:
    file.write_text(file.read_text("utf-8") + text, "utf-8")


def change(project: Path, key: str, value: str) -> None:
    """Change one of a project's answers."""
    file = project / ".copier-answers.yml"
    text = re.sub(rf"^{key}: .*$", f"{key}: {value}", file.read_text("utf-8"), flags=re.M)
    file.write_text(text, "utf-8")


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "toolchain", lambda _: [])


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize(
    ("key", "value", "check", "found", "fix"),
    [
        ("_src_path", "/gone", "template", "is not at '/gone'",
         "correct _src_path or _commit in "),
        ("_src_path", "http://127.0.0.1:1/x.git", "template", "cannot be reached: ",
         "git ls-remote http://127.0.0.1:1/x.git"),
        ("_commit", "v99", "template", "has no version 'v99': its releases are v1.0.0",
         "correct _commit in "),
        ("license", "gpl", "answers", "license is gpl there", "correct them in "),
        ("preset", "medium", "answers", "preset is medium there", "correct "),
    ],
)  # fmt: skip
def test_errors_of_network_version_and_answers_are_distinct(
    key: str, value: str, check: str, found: str, fix: str, torchsmith: Torchsmith, project: Path
) -> None:
    change(project, key, value)
    done = torchsmith("doctor", "--json", cwd=project)
    assert done.status == 1
    assert {row["check"] for row in done.json["findings"] if row["status"] == "problem"} == {check}
    row = findings(done.json)[check]
    assert found in row["found"]
    assert row["fix"].startswith(fix)
    assert "\n" not in row["found"] + row["fix"]


def test_missing_git_is_not_reported_as_a_project_problem(
    torchsmith: Torchsmith, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    done = torchsmith("doctor", "--python", sys.executable, "--json", cwd=project)
    assert done.status == 1
    rows = findings(done.json)
    assert rows["git"]["found"] == "not installed"
    assert rows["template"]["found"] == "cannot be compared without git"
    assert "under git" not in rows


def test_a_git_that_cannot_merge_trees_is_a_problem(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.34.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    done = torchsmith("doctor", "--python", sys.executable, "--json", cwd=tmp_path)
    row = findings(done.json)["git"]
    assert (row["status"], row["found"]) == ("problem", "2.34.1")
    assert row["fix"] == "install git 2.38 or newer, which updates need"


def test_restore_writes_template_files_and_loses_no_edits(
    torchsmith: Torchsmith, project: Path, render: Renderer
) -> None:
    fresh = contents(render(features=["amp"]))
    (project / "LICENSE").write_text("ours\n")
    (project / "NOTICE").write_text("ours alone\n")
    commit(project, "edited")
    (project / "csrc" / "amp" / "autocast.cpp").unlink()
    before = contents(project)

    done = torchsmith("doctor", "--restore", "LICENSE", "--restore", "NOTICE", cwd=project)
    done.refused("the template has no file 'NOTICE'")
    assert contents(project) == before

    done = torchsmith(
        "doctor", "--project", str(project), "--restore", "LICENSE", "--restore",
        "csrc/amp/autocast.cpp", cwd=project / "csrc",
    ).passed()  # fmt: skip
    assert contents(project) == {**fresh, "NOTICE": b"ours alone\n"}
    assert git(project, "status", "--porcelain").split() == ["M", "LICENSE"]
    # A restored file is uncommitted, but restoring it again loses nothing.
    torchsmith("doctor", "--restore", "LICENSE", cwd=project).passed()
    (project / "LICENSE").write_text("not committed\n")
    git(project, "add", "LICENSE")
    torchsmith("doctor", "--restore", "LICENSE", cwd=project).refused()


@pytest.mark.usefixtures("no_tools")
def test_ignored_files_are_not_reported_and_stay_ignored_after_updates(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    template, project = render.apart(tmp_path, features=["amp"])
    for path in ("LICENSE", "README.md", "CHANGELOG.md"):
        append(project / path, "\nours\n")
    commit(project, "edited")
    torchsmith("doctor", "--ignore", "LICENSE", cwd=project).passed()
    torchsmith("doctor", "--ignore", "CHANGELOG.md", "--ignore", "LICENSE", cwd=project).passed()
    assert git(project, "diff", "--stat").count(" | ") == 1
    commit(project, "ignored")

    def reported() -> list[str]:
        done = torchsmith("doctor", "--drift", "--json", cwd=project)
        assert done.status == 3, done.err
        return [row["path"] for row in done.json["drift"]["differences"]]

    assert reported() == ["README.md"]
    manifest = template / "template" / ".torchsmith.yml.jinja"
    first, rest = manifest.read_text("utf-8").split("parts:\n")
    manifest.write_text(f"{first}parts:\n  news:\n    requires: []\n    paths: [news]\n{rest}")
    commit(template, "release", tag="v1.1.0")
    for command in (("add", "rng"), ("update",)):
        torchsmith(*command, "--yes", cwd=project).passed()
        commit(project, command[0])
    assert reported() == ["README.md"]
    assert "news" in (project / ".torchsmith.yml").read_text("utf-8")
    assert "\nignore: [CHANGELOG.md, LICENSE]\n" in (project / ".torchsmith.yml").read_text("utf-8")


def test_ignore_and_restore_refuse_unknown_and_uncommitted_files(
    torchsmith: Torchsmith, project: Path
) -> None:
    readme = project / "README.md"
    readme.write_text("edited\n")
    for arguments, sentence in (
        (("--ignore", "nofile"), "the template has no file 'nofile' in this project"),
        (("--ignore", "readme.md"), "did you mean 'README.md'?"),
        (("--restore", "docs/nofile.md"), "the template has no file 'docs/nofile.md'"),
        (("--ignore", "../torch-foo/nofile"), "the template has no file '../torch-foo/nofile'"),
        (("--restore", "README.md"), "'README.md' has uncommitted changes, which would be lost"),
    ):
        torchsmith("doctor", *arguments, cwd=project).refused(sentence)
    shutil.rmtree(project / ".git")
    done = torchsmith("doctor", "--restore", "README.md", cwd=project)
    done.refused("is not a git repository, so your 'README.md' could not be restored")
    assert readme.read_text() == "edited\n"


def test_a_fix_is_printed_on_one_line_and_quotes_its_path(
    torchsmith: Torchsmith, tmp_path: Path
) -> None:
    """Output to a pipe has lines of 80 characters."""
    python = bare_python(tmp_path / ("a-long-name " * 10).strip())
    rows = findings(torchsmith("doctor", "--python", str(python), "--json", cwd=tmp_path).json)
    fixes = [row["fix"] for row in rows.values() if " -m " in row["fix"]]
    assert len(fixes) > 3
    assert all(shlex.split(fix)[:2] == [str(python), "-m"] for fix in fixes)
    done = torchsmith("doctor", "--python", str(python), cwd=tmp_path, columns=40)
    by_pip = [fix for fix in fixes if " -m pip install " in fix]
    together = shlex.join([str(python), "-m", "pip", "install"])
    packages = sorted(word for fix in by_pip for word in shlex.split(fix)[4:])
    shown = [line.strip() for line in done.out.splitlines() if line.startswith("  ")]
    (one,) = (line for line in shown if line.startswith(together))
    assert sorted(shlex.split(one)[4:]) == packages
    assert {*fixes} - {*by_pip} <= {*shown}
    assert "…" not in done.out


@pytest.mark.usefixtures("no_tools")
def test_a_fix_begins_with_cd_if_the_project_is_elsewhere(
    torchsmith: Torchsmith, project: Path, tmp_path: Path
) -> None:
    shutil.rmtree(project / ".git")
    elsewhere = tmp_path / "my work" / "torch-foo"
    elsewhere.parent.mkdir()
    project.rename(elsewhere)
    fix = "git init && git add -A && git commit -m 'Start'"
    done = torchsmith("doctor", "--project", "my work/torch-foo", "--json", cwd=tmp_path)
    assert findings(done.json)["under git"]["fix"] == f"cd '{elsewhere}' && {fix}"
    done = torchsmith("doctor", "--json", cwd=elsewhere)
    assert findings(done.json)["under git"]["fix"] == fix


def test_ignore_keeps_what_another_command_ignores_meanwhile(
    torchsmith: Torchsmith, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_later(*arguments: Any) -> Any:
        monkeypatch.setattr("torchsmith.drift.write_texts", write_texts)
        torchsmith("doctor", "--ignore", "LICENSE", cwd=project).passed()
        return write_texts(*arguments)

    monkeypatch.setattr("torchsmith.drift.write_texts", write_later)
    done = torchsmith("doctor", "--ignore", "README.md", "--json", cwd=project).passed()
    assert done.json["ignored"] == ["LICENSE", "README.md"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ignore: []\n\n# mine\n", "ignore: [LICENSE]\n\n# mine\n"),
        ("ignore: [a b]\n", "ignore: [LICENSE, a b]\n"),
        ("# mine\nignore:\n- LICENSE\n- x\n", "# mine\nignore: [LICENSE, x]\n"),
        ("# a project from before there was a list\n", "ignore: [LICENSE]\n# a project from "),
    ],
)
def test_ignore_keeps_the_rest_of_the_manifest(
    before: str, after: str, torchsmith: Torchsmith, project: Path
) -> None:
    manifest = project / ".torchsmith.yml"
    parts = "parts:\n" + manifest.read_text("utf-8").partition("parts:\n")[2]
    manifest.write_text(before + parts, "utf-8")
    torchsmith("doctor", "--ignore", "LICENSE", cwd=project).passed()
    assert manifest.read_text("utf-8").startswith(after)
    assert manifest.read_text("utf-8").endswith(parts)
