"""The report of ``python -m <package>.doctor --ready`` about a project and PyTorch's relay."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from backend import DEVICE, PACKAGE
from support import is_simulator

READY: Any = importlib.import_module(f"{PACKAGE}.doctor.ready")
FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES
WORKFLOW = """
on:
  repository_dispatch:
    types: [pull_request]
jobs:
  gate:
    timeout-minutes: 180
    permissions:
      id-token: write
"""
SIMULATED = is_simulator()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that meets all requirements that its folder can meet."""
    (tmp_path / "python" / PACKAGE).mkdir(parents=True)
    write(tmp_path / ".github/workflows/relay.yml", WORKFLOW)
    write(tmp_path / ".github/workflows/ci.yml", "on: push\njobs: {a: {timeout-minutes: 999}}\n")
    write(tmp_path / ".github/CODEOWNERS", "# @nobody\n/csrc/ @ada @acme/kernels # @x\n* @ada\n")
    write(tmp_path / "LICENSE", "")
    write(tmp_path / "pytorch-tests.json", '{"source": "2.13.0", "share": 0.95}')
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "remote", "add", "origin", "https://github.com/acme/torch-acme.git")
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def missing(project: Path) -> set[tuple[str, str]]:
    found = READY.examine(project).requirements
    return {
        (item.level, item.name) for item in found if item.state is READY.State.MISSING
    } - HARDWARE


HARDWARE = {("L1", "hardware that can be named")}
"""The requirement that the simulator does not meet."""


def test_a_complete_project_lacks_only_hardware(project: Path) -> None:
    assert missing(project) == set()
    readiness = READY.examine(project)
    assert readiness.ready is not SIMULATED
    details = {item.name: item.detail for item in readiness.requirements}
    assert details["repository on GitHub"] == "acme/torch-acme"
    assert details["workflow on repository_dispatch"] == "relay.yml"
    assert details["people on call"] == "@ada, @acme/kernels"
    assert details["over 90 % of PyTorch's suites pass"] == "95.0 % of those that ran have passed"
    assert {item.level for item in readiness.requirements} == {"L1", "L2", "L3"}


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/acme/torch.acme",
        "git@github.com:acme/torch.acme.git",
        "ssh://git@github.com/acme/torch.acme.git",
        "https://github.com/acme/torch.acme/",
    ],
)
def test_every_form_of_a_github_address_is_accepted(remote: str, project: Path) -> None:
    git(project, "remote", "set-url", "origin", remote)
    assert "acme/torch.acme" in READY.examine(project).request


@pytest.mark.parametrize(
    "remote",
    ["https://gitlab.com/acme/a.git", "https://github.com.evil.example/a/b", "/srv/github.com/a/b"],
)
def test_a_repository_on_another_host_is_missing_at_l1(remote: str, project: Path) -> None:
    git(project, "remote", "set-url", "origin", remote)
    assert missing(project) == {("L1", "repository on GitHub")}
    readiness = READY.examine(project)
    assert readiness.request == ""
    assert "no text" in readiness.text()


def test_without_a_workflow_the_command_that_adds_it_is_printed(project: Path) -> None:
    (project / ".github/workflows/relay.yml").unlink()
    assert missing(project) == {
        ("L1", "workflow on repository_dispatch"),
        ("L2", "results go back"),
        ("L2", "3 hours a run"),
    }
    found = {item.name: item.detail for item in READY.examine(project).requirements}
    how = found["workflow on repository_dispatch"]
    if FEATURES["relay"].enabled:
        assert "ci_provider=github" in how
    else:
        assert how.startswith("generated without relay; add it with: torchsmith add ")


@pytest.mark.parametrize(
    ("old", "new", "lacking"),
    [
        ("timeout-minutes: 180", "timeout-minutes: 181", "3 hours a run"),
        ("timeout-minutes: 180", "runs-on: x", "3 hours a run"),
        ("id-token: write", "contents: read", "results go back"),
    ],
)
def test_a_workflow_below_l2_is_named(old: str, new: str, lacking: str, project: Path) -> None:
    write(project / ".github/workflows/relay.yml", WORKFLOW.replace(old, new))
    assert missing(project) == {("L2", lacking)}


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ('{"source": "2.13.0", "share": 0.9}', "90.0 % of those that ran"),
        ('{"source": "", "share": 0.99}', "only the tests of PyTorch's wheel"),
        ('{"source": "2.13.0"}', "has no figures"),
        ("[]", "has no figures"),
        ("{", "has no figures"),
        (None, "run python tests/pytorch"),
    ],
)
def test_less_than_90_percent_of_pytorchs_suites_is_missing_at_l3(
    report: str | None, words: str, project: Path
) -> None:
    file = project / "pytorch-tests.json"
    file.unlink() if report is None else file.write_text(report, "utf-8")
    assert missing(project) == {("L3", "over 90 % of PyTorch's suites pass")}
    assert words in READY.examine(project).text()


def test_without_people_on_call_l3_is_missing(project: Path) -> None:
    write(project / ".github/CODEOWNERS", "/csrc/\n# @ada\n")
    assert missing(project) == {("L3", "people on call")}


def test_the_request_is_for_the_reached_level(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(READY, "_devices", lambda: ["Acme X1"])
    readiness = READY.examine(project)
    assert (readiness.ready, readiness.level) == (True, "L3")
    assert f"  {DEVICE}:\n    acme/torch-acme: [ada, acme/kernels]" in readiness.request
    assert "- Hardware: Acme X1" in readiness.request
    (project / "pytorch-tests.json").unlink()
    assert READY.examine(project).level == "L2"
    assert "under L2:\n\n  - acme/torch-acme\n" in READY.examine(project).request
    (project / "LICENSE").unlink()
    assert READY.examine(project).level == "L1"


def doctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"{PACKAGE}.doctor", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_command_prints_text_or_json_with_a_status_for_missing_items(
    project: Path,
) -> None:
    done = doctor(project, "--ready")
    assert done.returncode == int(SIMULATED), done.stderr
    assert "acme/torch-acme" in done.stdout
    done = doctor(project, "--ready", "--json")
    said = json.loads(done.stdout)
    assert said["ready"] is not SIMULATED
    assert {item["state"] for item in said["requirements"]} <= {"there", "missing", "by hand"}
    assert "under L" in said["request"]


def test_outside_a_project_the_status_is_2(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--ready")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"has no python/{PACKAGE}: run this in the project's folder" in done.stderr
    assert doctor(tmp_path, "--ready", "--against", "2.13.0").returncode == 2
