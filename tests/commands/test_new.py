"""`torchsmith new --build --test`: what it runs, and how it ends."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from commanding import Torchsmith
from rendering import Renderer
from torchsmith import building, doctor


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python whose pip and pytest write down what they were asked, and fail on request."""
    monkeypatch.setattr(building, "toolchain", lambda _: [])
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\necho "$PWD: $*" >> {tmp_path}/log\necho "[1/2] step"\n'
        'echo "the reason"\nif [ "$2" = "$FAIL" ]; then exit 3; fi\necho "== 7 passed =="\n'
    )
    script.chmod(0o755)
    return script


def test_it_builds_then_tests_and_reports(
    python: Path, torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    done = torchsmith(
        "new", "out", "--template", str(render.template), "--test", "--python", str(python),
        "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.json == {
        "destination": str(tmp_path / "out"),
        "backend_name": "foo",
        "features": ["amp", "rng", "storage", "publishing"],
        "version": "v1.0.0",
        "installed": True,
        "tests": "7 passed",
    }
    assert (tmp_path / "log").read_text().splitlines() == [
        f"{tmp_path}/out: -m pip install --verbose --no-build-isolation .[test]",
        f"{tmp_path}/out: -m pytest --color=no",
    ]


@pytest.mark.parametrize(("step", "installed"), [("pip", False), ("pytest", True)])
def test_a_step_that_fails_shows_why_and_ends_with_status_1(
    step: str, installed: bool, python: Path, torchsmith: Torchsmith, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, render: Renderer,
) -> None:  # fmt: skip
    monkeypatch.setenv("FAIL", step)
    done = torchsmith(
        "new", "out", "--template", str(render.template), "--test", "--python", str(python),
        "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 1
    assert done.err.strip().endswith("the reason")
    assert (done.json["installed"], done.json["tests"]) == (installed, None)


def test_nothing_is_rendered_where_nothing_can_be_built(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = doctor.Finding("torch", "problem", "not installed", "pip install torch")
    monkeypatch.setattr(building, "toolchain", lambda _: [missing])
    done = torchsmith("new", "out", "--build", "--python", sys.executable, cwd=tmp_path)
    assert done.status == 2
    assert done.err == (
        "torchsmith: it cannot be built here: torch not installed: pip install torch\n"
    )
    assert not list(tmp_path.iterdir())


def test_it_says_what_to_do_next(torchsmith: Torchsmith, tmp_path: Path, render: Renderer) -> None:
    done = torchsmith(
        "new", "out", "--template", str(render.template), "-d", "backend_name=my_chip",
        "-d", "features=[rng]", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0
    assert "out is rendered, with rng." in done.err
    for step in ("cd out", "git commit -m 'Render torch-my-chip'", "torchsmith doctor", "pytest"):
        assert f"  {step}" in done.err.replace("git init && git add -A && ", "")


def test_without_git_it_warns_that_there_will_be_no_updates(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "template"
    shutil.copytree(render.template, plain, ignore=shutil.ignore_patterns(".git"))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = torchsmith("new", "out", "--template", "template", "-d", "preset=minimal", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "belongs to no version, and cannot be updated" in done.err
    assert (tmp_path / "out" / "CMakeLists.txt").exists()


def test_a_template_named_from_here_is_found_from_elsewhere(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template").symlink_to(render.template)
    done = torchsmith("new", "out", "--template", "template", "-d", "preset=minimal", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "cannot be updated" not in done.err
    answers = yaml.safe_load((tmp_path / "out" / ".copier-answers.yml").read_text("utf-8"))
    assert answers["_src_path"] == f"{tmp_path}/template"


def test_a_version_is_asked_of_a_repository_alone(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    plain = tmp_path / "template"
    shutil.copytree(render.template, plain, ignore=shutil.ignore_patterns(".git"))
    done = torchsmith("new", "out", "--template", "template", "--ref", "v1.0.0", cwd=tmp_path)
    assert done.status == 2
    assert f"'{plain}' is not under git, so it has no version 'v1.0.0'" in done.err
    assert not (tmp_path / "out").exists()
