"""Our workflows, the rendered ones and those of docs/ci.md are valid and complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from commanding import fits, succeed
from rendering import ROOT, Renderer
from torchsmith import catalog

WINDOW = catalog.torch_window()
SCHEMAS = {"github": "github-workflows", "gitlab": "gitlab-ci"}
NIGHTLY = ("integrations", "operator_conformance", "pytorch_suites", "random_programs")
"""Features that have their own workflow."""
NAMES = {
    ("ours", "github"): {"ci.yml", "nightly.yml", "release.yml"},
    ("ours", "gitlab"): {".gitlab-ci.yml"},
    ("rendered", "github"): {
        *("ci.yml", "drift.yml", "nightly.yml", "relay.yml", "release.yml", "update.yml"),
        *(f"{id}.yml" for id in NIGHTLY),
    },
    ("rendered", "gitlab"): {
        *(".gitlab-ci.yml", "drift.yml", "nightly.yml", "release.yml", "update.yml"),
        *(f"{id}.yml" for id in NIGHTLY),
    },
}
TESTED = ".".join(WINDOW["tested"].split(".")[:2])
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

GUIDE = (ROOT / "docs" / "ci.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n# (\.\S+?),?( .*)?\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(params=["ours", "rendered"])
def project(request: pytest.FixtureRequest, render: Renderer) -> dict[str, Path]:
    """Return the folder with each provider's files."""
    if request.param == "ours":
        return {"github": ROOT, "gitlab": ROOT}
    return {provider: render(preset="full", ci_provider=provider) for provider in SCHEMAS}


def workflows(project: dict[str, Path], provider: str) -> list[Path]:
    if provider == "gitlab":
        more = (project["gitlab"] / ".gitlab").glob("*.yml")
        return [project["gitlab"] / ".gitlab-ci.yml", *sorted(more)]
    return sorted((project["github"] / ".github" / "workflows").glob("*.yml"))


def scripts(project: dict[str, Path], provider: str) -> list[str]:
    """Return every shell script in the workflows."""

    def within(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "run" and isinstance(value, str):
                    yield value
                elif key == "script":
                    yield from value
                else:
                    yield from within(value)
        elif isinstance(node, list):
            for item in node:
                yield from within(item)

    files = workflows(project, provider)
    return [text for file in files for text in within(yaml.safe_load(file.read_text("utf-8")))]


@pytest.mark.parametrize("provider", SCHEMAS)
def test_workflows_fit_the_published_schemas(provider: str, project: dict[str, Path]) -> None:
    files = workflows(project, provider)
    part = "ours" if project[provider] == ROOT else "rendered"
    assert {file.name for file in files} == NAMES[part, provider]
    fits(SCHEMAS[provider], *files)


def test_a_wrong_key_does_not_fit_the_schema(tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    (tmp_path / "ci.yml").write_text(text.replace("runs-on:", "run-on:"), "utf-8")
    with pytest.raises(AssertionError, match="runs-on"):
        fits(SCHEMAS["github"], tmp_path / "ci.yml")


def test_actions_are_pinned_by_commit(project: dict[str, Path]) -> None:
    """The owner of an action can move a tag to other code, but not a commit."""
    text = "".join(file.read_text("utf-8") for file in workflows(project, "github"))
    lines = re.findall(r"^\s*(?:- )?uses: *(.*)$", text, re.MULTILINE)
    assert len(lines) > 3
    pinned = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*")
    assert [line for line in lines if not pinned.fullmatch(line)] == []
    # All of them use the same commit of an action.
    assert len(set(lines)) == len({line.partition("@")[0] for line in lines})


@pytest.mark.parametrize("provider", SCHEMAS)
def test_workflow_scripts_are_valid_bash(provider: str, project: dict[str, Path]) -> None:
    found = scripts(project, provider)
    assert len(found) > 5
    for script in found:
        succeed("bash", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "1", script))


@pytest.mark.parametrize("provider", SCHEMAS)
def test_workflows_run_for_changes_and_every_night(provider: str, project: dict[str, Path]) -> None:
    text = "".join(file.read_text("utf-8") for file in workflows(project, provider))
    words = {"github": ["pull_request:", "schedule:"], "gitlab": ['== "schedule"', '!= "schedule"']}
    assert [word for word in words[provider] if word not in text] == []


def test_the_nightly_workflow_tests_every_pytorch_and_python(render: Renderer) -> None:
    github = render(preset="full") / ".github" / "workflows" / "nightly.yml"
    matrix = yaml.safe_load(github.read_text("utf-8"))["jobs"]["test"]["strategy"]["matrix"]
    gitlab = render(preset="full", ci_provider="gitlab") / ".gitlab" / "nightly.yml"
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


def test_make_targets_in_our_workflows_exist() -> None:
    ours = dict.fromkeys(SCHEMAS, ROOT)
    lines = [
        line.strip()
        for provider in SCHEMAS
        for script in scripts(ours, provider)
        for line in script.splitlines()
    ]
    made = {line.split()[1] for line in lines if line.startswith("make ")}
    assert made == {
        "venv", "demo", "check", "test", "test-all", "conformance", "fuzz", "compat", "docs",
        "sanitize", "site", "release-check", "oclgrind", "elsewhere",
    }  # fmt: skip
    assert made <= TARGETS


# The workflow and the commands of docs/ci.md.


@pytest.mark.parametrize(("name", "note", "text"), BLOCKS, ids=[block[0] for block in BLOCKS])
def test_workflows_in_the_guide_are_valid_with_the_rendered_ones(
    name: str, note: str, text: str, tmp_path: Path, render: Renderer
) -> None:
    there = render(preset="full", ci_provider="gitlab") / name
    whole = (there.read_text("utf-8") + text) if note else text
    (tmp_path / "workflow.yml").write_text(whole, "utf-8")
    fits(SCHEMAS["github" if "github" in name else "gitlab"], tmp_path / "workflow.yml")
    assert set(re.findall(r'"(2\.\d+)"', text)) <= set(WINDOW["versions"])
    assert "test" in yaml.safe_load(whole).get("jobs", yaml.safe_load(whole))


def test_the_guide_has_a_workflow_per_provider_and_existing_make_targets() -> None:
    assert [block[0] for block in BLOCKS] == [".github/workflows/device.yml", ".gitlab-ci.yml"]
    assert set(re.findall(r"`make ([\w-]+)", GUIDE)) == {"compat", "site", "test-all"} <= TARGETS
