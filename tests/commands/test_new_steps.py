"""`torchsmith new` after the render: builds, tests, commits, questions and remembered answers."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from commanding import Torchsmith, new, succeed
from rendering import Renderer, answers_in, git
from torchsmith import building, catalog, doctor


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a Python whose pip and pytest record their arguments, and fail on request."""
    monkeypatch.setattr(building, "toolchain", lambda _: [])
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\necho "$PWD: $*" >> {tmp_path}/log\necho "[1/2] step"\n'
        'echo "the reason"\nif [ "$2" = "$FAIL" ]; then exit 3; fi\necho "== 7 passed =="\n'
    )
    script.chmod(0o755)
    return script


def test_new_builds_tests_and_reports(
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
        "features": [id for id in catalog.features() if id in catalog.presets()["standard"]],
        "version": "v1.0.0",
        "committed": False,
        "installed": True,
        "tests": "7 passed",
    }
    assert (tmp_path / "log").read_text().splitlines() == [
        f"{tmp_path}/out: -m pip install --verbose --no-build-isolation .[test]",
        f"{tmp_path}/out: -m pytest -n auto --color=no",
    ]


@pytest.mark.parametrize(("step", "installed"), [("pip", False), ("pytest", True)])
def test_a_failed_step_shows_its_output_and_ends_with_status_1(
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


def test_an_interrupted_build_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\necho '[1/2]'\nwait\n")
    script.chmod(0o755)

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        building.install(tmp_path, str(script), interrupted)
    stat = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    end = time.monotonic() + 30  # the system may take a moment to end it
    with suppress(FileNotFoundError, ProcessLookupError):
        while stat.read_text().split()[2] != "Z":
            assert time.monotonic() < end, "it still runs"
            time.sleep(0.05)


def test_new_with_build_renders_nothing_if_tools_are_missing(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = [
        doctor.Finding("torch", "problem", "2.9.1", "py -m pip install torch==2.13.0"),
        doctor.Finding("C++ compiler", "problem", "none is there", "install g++"),
        doctor.Finding("ccache", "warning", "not installed", "install ccache"),
        doctor.Finding("cmake", "problem", "not installed", "py -m pip install 'cmake>=3.22'"),
    ]
    monkeypatch.setattr(building, "toolchain", lambda _: missing)
    done = torchsmith("new", "out", "--build", "--python", sys.executable, cwd=tmp_path)
    assert done.status == 2
    assert done.err == (
        "torchsmith: the project cannot be built here: torch 2.9.1, "
        "C++ compiler none is there, cmake not "
        "installed: install g++; then py -m pip install torch==2.13.0 'cmake>=3.22'\n"
    )
    assert not list(tmp_path.iterdir())


def test_new_without_a_terminal_renders_and_prints_the_next_steps(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COPIER_SETTINGS_PATH", str(tmp_path / "settings.yml"))
    done = torchsmith(
        "new", "out", "--template", str(render.template), "-d", "backend_name=my_chip",
        "-d", "features=[rng]", "-d", "vendor=Acme", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0
    assert "out is rendered, with rng." in done.err
    steps = [line for line in done.err.splitlines() if line.startswith("  ")]
    tested = catalog.torch_window()["tested"]
    assert steps == [
        "  cd out",
        "  git init && git add -A && git commit -m 'Render torch-my-chip'   # updates need git",
        f"  pip install torch=={tested} -r requirements-build.txt",
        "  torchsmith doctor   # checks the build tools",
        "  pip install --no-build-isolation '.[test]'",
        "  pytest -n auto",
    ]
    readme = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert all(f"\n{step.strip()}" in readme for step in [steps[2], *steps[4:]])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not (tmp_path / "out" / ".git").exists()


def test_the_option_git_makes_a_first_commit(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    done = torchsmith(*new(render, "--git", "--json"), cwd=tmp_path)
    assert done.status == 0, done.err
    assert done.json["committed"] is True
    project = tmp_path / "torch-acme"
    assert git(project, "log", "--format=%s") == "Render torch-acme\n"
    assert git(project, "status", "--porcelain") == ""


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg"])
def test_output_of_a_refusing_hook_is_shown_with_a_command_that_commits(
    hook: str, torchsmith: Torchsmith, tmp_path: Path, render: Renderer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    script = tmp_path / "hooks" / hook
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho No ticket is named.\necho See the wiki. >&2\nexit 1\n")
    script.chmod(0o755)
    for key, value in (("COUNT", "1"), ("KEY_0", "core.hooksPath"), ("VALUE_0", script.parent)):
        monkeypatch.setenv(f"GIT_CONFIG_{key}", str(value))
    done = torchsmith(*new(render, "--git"), cwd=tmp_path)
    assert done.status == 1
    assert "refused:\n\n  No ticket is named.\n  See the wiki.\n" in done.err
    (step,) = (line for line in done.err.splitlines() if "git commit -m" in line)
    script.unlink()
    succeed("sh", "-c", step, cwd=tmp_path / "torch-acme")
    assert git(tmp_path / "torch-acme", "log", "--format=%s") == "Render torch-acme\n"
    assert git(tmp_path / "torch-acme", "status", "--porcelain") == ""


def test_the_next_steps_in_a_repository_do_not_create_another(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "mine").write_text("mine\n")
    done = torchsmith(*new(render), cwd=tmp_path)
    (step,) = (line for line in done.err.splitlines() if "git commit -m" in line)
    succeed("sh", "-c", step, cwd=tmp_path / "torch-acme")
    assert git(tmp_path, "status", "--porcelain") == "?? mine\n"


def test_without_a_git_identity_the_project_is_rendered_but_not_committed(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{who}_NAME")
        monkeypatch.delenv(f"GIT_{who}_EMAIL")
    config = tmp_path / "config"
    config.write_text("[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    done = torchsmith(*new(render, "--git"), cwd=tmp_path)
    assert done.status == 1
    assert "git has no name and address for you, so nothing is committed" in done.err
    assert "  git config --global user.email you@example.com\n" in done.err
    assert (tmp_path / "torch-acme" / "CMakeLists.txt").exists()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return copier's settings of a user at a terminal."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    file = tmp_path / "config" / "settings.yml"
    monkeypatch.setenv("COPIER_SETTINGS_PATH", str(file))
    return file


@pytest.mark.parametrize(
    "before", [None, "trust:\n- a\ndefaults:\n  user_name: Me\n  vendor: Old\n"]
)
def test_vendor_and_licence_are_remembered_and_other_settings_are_kept(
    before: str | None, settings: Path, torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    old: dict[str, Any] = yaml.safe_load(before or "defaults: {}")
    if before:
        settings.parent.mkdir()
        settings.write_text(before, "utf-8")
    given = ("--defaults", "-d", "vendor=Ac: me", "-d", "license=mit", "-d", "description=x")
    done = torchsmith(*new(render, *given), cwd=tmp_path)
    assert done.status == 0, done.err
    assert f"Remembered for your next project, in {settings}: vendor and license\n" in done.err
    remembered = {**old["defaults"], "vendor": "Ac: me", "license": "mit"}
    assert yaml.safe_load(settings.read_text("utf-8")) == {**old, "defaults": remembered}
    done = torchsmith(
        "new", "torch-zeta", "--template", str(render.template), "--defaults", "-d",
        "preset=minimal", cwd=tmp_path,
    )  # fmt: skip
    assert "Remembered" not in done.err
    found = answers_in(tmp_path / "torch-zeta")
    assert (found["vendor"], found["license"]) == ("Ac: me", "mit")
    assert found["description"] == "PyTorch on Zeta devices"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("defaults:\n- a\n", "To be offered this"),
        ("--- {defaults: null}\n", "settings.yml:\n\ndefaults:\n  vendor: Acme\n"),
        ("# mine\ntrust: []\n", "settings.yml:\n\ndefaults:\n  vendor: Acme\n"),
    ],
)
def test_unusual_settings_files_are_not_changed(
    text: str, words: str, settings: Path, torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    settings.parent.mkdir()
    settings.write_text(text, "utf-8")
    done = torchsmith(*new(render, "--defaults", "-d", "vendor=Acme"), cwd=tmp_path)
    assert settings.read_text("utf-8") == text
    assert (words in done.err) == (done.status == 0), done.err
    if done.status:
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert f"copier's settings in {settings} are broken (" in done.err


def test_defaults_of_other_templates_are_not_used(
    settings: Path, torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    settings.parent.mkdir()
    settings.write_text(
        "defaults: {license: GPL-3.0, vendor: [a], preset: full, color: red}\n", encoding="utf-8"
    )
    done = torchsmith(
        "new", "torch-acme", "--template", str(render.template), "--defaults", cwd=tmp_path
    )
    assert done.status == 0, done.err
    found = answers_in(tmp_path / "torch-acme")
    assert (found["license"], found["vendor"]) == ("apache-2.0", "Example Vendor")
    assert set(found["features"]) == catalog.presets()["standard"]
