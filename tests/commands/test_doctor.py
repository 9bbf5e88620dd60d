"""`torchsmith doctor`: tools, and whose hand a file drifted by."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from commanding import Torchsmith
from rendering import Renderer, commit, snapshot
from torchsmith import toolchain


def findings(report: dict[str, object]) -> dict[str, dict[str, str]]:
    rows = report["findings"]
    assert isinstance(rows, list)
    return {row["check"]: row for row in rows}


def test_the_tools_of_this_environment_are_found(torchsmith: Torchsmith, tmp_path: Path) -> None:
    done = torchsmith("doctor", "--python", sys.executable, "--json", cwd=tmp_path)
    rows = findings(done.json)
    assert {"python", "torch", "pybind11", "C++ compiler", "cmake", "ninja", "git"} <= set(rows)
    assert rows["python"]["status"] == rows["C++ compiler"]["status"] == "ok"
    assert done.json["drift"] is None


def test_what_is_missing_is_a_problem_with_a_fix(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    done = torchsmith("doctor", "--python", str(python), "--json", cwd=tmp_path)
    assert done.status == 1
    rows = findings(done.json)
    for check in ("torch", "pybind11", "scikit-build-core", "C++ compiler"):
        assert rows[check]["status"] == "problem"
        assert rows[check]["fix"]
    tested = toolchain.tables.load("torch")["torch_window"]["default"]["tested"]
    assert rows["torch"]["fix"] == f"{python} -m pip install torch=={tested}"
    done = torchsmith("doctor", "--python", str(tmp_path / "none"), cwd=tmp_path)
    assert (done.status, done.err.count("\n")) == (2, 1)


def test_drift_tells_your_edits_from_the_templates(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "toolchain", lambda _: [])
    template = snapshot(tmp_path / "template")
    project = Renderer(template, tmp_path).fresh(tmp_path / "project", features=["amp"])
    commit(project, "rendered")
    assert torchsmith("doctor", "--json", cwd=project).json["drift"] == {
        "before": "v1.0.0", "after": "v1.0.0", "differences": [],
    }  # fmt: skip

    for path in ("README.md", "csrc/amp/autocast.cpp", "LICENSE"):
        file = project / path
        file.write_text(file.read_text("utf-8") + "ours\n", "utf-8")
    (project / "CHANGELOG.md").unlink()
    (project / "device" / "acme.cpp").write_text("ours alone\n")
    for path in ("LICENSE.jinja", "README.md.jinja"):
        file = template / "template" / path
        file.write_text(file.read_text("utf-8") + "theirs\n", "utf-8")
    (template / "template" / "docs" / "news.md").write_text("# News\n")
    (template / "template" / "docs" / "tracing.md.jinja").unlink()
    commit(template, "release", tag="v1.1.0")

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
        "docs/tracing.md": ("core", "", "deleted"),
    }
    rows = findings(done.json)
    assert rows["template"]["fix"] == "torchsmith update"
    assert rows["under git"]["status"] == "warning"


def test_a_template_that_is_gone_is_a_problem(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    monkeypatch.setattr(toolchain, "toolchain", lambda _: [])
    answers = project / ".copier-answers.yml"
    text = answers.read_text("utf-8")
    source = next(line for line in text.splitlines() if line.startswith("_src_path"))
    answers.write_text(text.replace(source, f"_src_path: {tmp_path / 'gone'}"), "utf-8")
    done = torchsmith("doctor", "--json", cwd=project)
    assert done.status == 1
    assert findings(done.json)["template"]["fix"].startswith("correct _src_path or _commit in ")
