"""Workflows, ours and the rendered ones: valid, complete, and made of commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rendering import ROOT, Renderer
from torchsmith import catalog

WINDOW = catalog.torch_window()
SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}
NAMES = {
    ("ours", "github"): {"ci.yml", "nightly.yml", "release.yml"},
    ("ours", "gitlab"): {".gitlab-ci.yml"},
    ("rendered", "github"): {"ci.yml", "nightly.yml", "release.yml", "update.yml"},
    ("rendered", "gitlab"): {".gitlab-ci.yml", "release.yml", "update.yml"},
}
TESTED = ".".join(WINDOW["tested"].split(".")[:2])


@pytest.fixture(params=["ours", "rendered"])
def project(request: pytest.FixtureRequest, render: Renderer) -> dict[str, Path]:
    """The folder that holds each provider's files."""
    if request.param == "ours":
        return {"github": ROOT, "gitlab": ROOT}
    return {provider: render(preset="full", ci_provider=provider) for provider in SCHEMAS}


def workflows(project: dict[str, Path], provider: str) -> list[Path]:
    if provider == "gitlab":
        more = (project["gitlab"] / ".gitlab").glob("*.yml")
        return [project["gitlab"] / ".gitlab-ci.yml", *sorted(more)]
    return sorted((project["github"] / ".github" / "workflows").glob("*.yml"))


def scripts(node: Any, at: str = "") -> Iterator[str]:
    """Every shell script in a workflow."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "run" and isinstance(value, str):
                yield value
            elif key == "script":
                yield from value
            else:
                yield from scripts(value)
    elif isinstance(node, list):
        for item in node:
            yield from scripts(item)


@pytest.mark.parametrize("provider", SCHEMAS)
def test_they_fit_the_published_schema(provider: str, project: dict[str, Path]) -> None:
    files = workflows(project, provider)
    part = "ours" if project[provider] == ROOT else "rendered"
    assert {file.name for file in files} == NAMES[part, provider]
    done = subprocess.run(
        [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", SCHEMAS[provider],
         *files],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_key_does_not_fit_the_schema(project: dict[str, Path], tmp_path: Path) -> None:
    text = workflows(project, "github")[0].read_text("utf-8")
    (tmp_path / "ci.yml").write_text(text.replace("runs-on:", "run-on:"), "utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", SCHEMAS["github"],
         tmp_path / "ci.yml"],
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 1


def test_actions_are_pinned_by_commit(project: dict[str, Path]) -> None:
    """A tag can be moved to other code by whoever owns the action; a commit cannot."""
    lines = [
        line.strip()
        for file in workflows(project, "github")
        for line in file.read_text("utf-8").splitlines()
        if re.match(r"\s*(- )?uses:", line)
    ]
    assert len(lines) > 3
    pinned = re.compile(r"(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$")
    assert [line for line in lines if not pinned.match(line)] == []


@pytest.mark.parametrize("provider", SCHEMAS)
def test_their_scripts_are_shell(provider: str, project: dict[str, Path]) -> None:
    found = [
        script
        for file in workflows(project, provider)
        for script in scripts(yaml.safe_load(file.read_text("utf-8")))
    ]
    assert len(found) > 5
    for script in found:
        plain = re.sub(r"\$\{\{.*?\}\}", "1", script)
        done = subprocess.run(["bash", "-n", "-c", plain], capture_output=True, text=True)
        assert done.returncode == 0, script + done.stderr


@pytest.mark.parametrize("provider", SCHEMAS)
def test_a_change_and_a_night_are_both_taken_care_of(
    provider: str, project: dict[str, Path]
) -> None:
    text = "".join(file.read_text("utf-8") for file in workflows(project, provider))
    words = {"github": ["pull_request:", "schedule:"], "gitlab": ['== "schedule"', '!= "schedule"']}
    assert [word for word in words[provider] if word not in text] == []


def test_the_rendered_night_takes_every_pytorch_and_every_python(render: Renderer) -> None:
    github = render(preset="full") / ".github" / "workflows" / "nightly.yml"
    matrix = yaml.safe_load(github.read_text("utf-8"))["jobs"]["test"]["strategy"]["matrix"]
    gitlab = render(preset="full", ci_provider="gitlab") / ".gitlab-ci.yml"
    first, second = yaml.safe_load(gitlab.read_text("utf-8"))["nightly"]["parallel"]["matrix"]
    pairs = {(torch, python) for torch in matrix["torch"] for python in matrix["python"]}
    pairs |= {(row["torch"], row["python"]) for row in matrix["include"]}
    assert {torch for torch, _ in pairs} == set(WINDOW["versions"])
    assert {python for torch, python in pairs if torch == TESTED} == set(WINDOW["python"])
    assert pairs == {
        (torch, python)
        for part in (first, second)
        for torch in part["TORCH"]
        for python in part["PYTHON"]
    }


def test_our_commands_are_ones_that_we_have() -> None:
    ours = dict.fromkeys(SCHEMAS, ROOT)
    lines = [
        line.strip()
        for provider in SCHEMAS
        for file in workflows(ours, provider)
        for script in scripts(yaml.safe_load(file.read_text("utf-8")))
        for line in script.splitlines()
    ]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    made = {line.split()[1] for line in lines if line.startswith("make ")}
    assert made == {
        "venv", "demo", "test", "test-all", "conformance", "fuzz", "compat", "docs", "sanitize",
        "site", "release-check",
    }  # fmt: skip
    assert made <= set(targets)
    smoke = {line for line in lines if "torchsmith smoke" in line}
    assert len(smoke) == 3
    for line in smoke:
        plain = re.sub(r"\$\{\{.*?\}\}|\$CI_NODE_INDEX|\$CI_NODE_TOTAL", "4", line)
        words = [word for word in shlex.split(plain)[1:] if not word.endswith((".xml", ".html"))]
        words = [word for word in words if word not in ("--junit", "--page")]
        done = subprocess.run(
            [sys.executable, "-m", "torchsmith.cli", *words, "--list"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "waiting" in done.stdout
