"""`release`, `relay` and `editors`: their files are valid, short and consistent."""

from __future__ import annotations

import json
import re
import sys
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from commanding import fits, succeed
from rendering import Renderer, files, git, toml
from torchsmith import catalog

WINDOW = catalog.torch_window()
TESTED = ".".join(WINDOW["tested"].split(".")[:2])
PROCESSORS = {
    "ubuntu-24.04": "x86_64",
    "ubuntu-24.04-arm": "aarch64",
    "saas-linux-small-amd64": "x86_64",
    "saas-linux-small-arm64": "aarch64",
}
# PyTorch has no wheels for these.
NONE = {("2.15", "3.10")}


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text("utf-8"))


@pytest.fixture(params=["github", "gitlab"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(provider: str, render: Renderer) -> Path:
    return render(preset="full", ci_provider=provider)


@pytest.mark.parametrize(
    ("provider", "schema", "pattern"),
    [
        ("github", "dependabot", ".github/dependabot.yml"),
        ("github", "github-issue-forms", ".github/ISSUE_TEMPLATE/*.yml"),
        ("gitlab", "renovate", ".gitlab/renovate.json"),
    ],
)
def test_configuration_files_fit_the_published_schemas(
    provider: str, schema: str, pattern: str, render: Renderer
) -> None:
    found = sorted(render(preset="full", ci_provider=provider).glob(pattern))
    assert found
    fits(schema, *found)


def test_paths_in_agents_md_exist(render: Renderer) -> None:
    """The project has only the feature `editors`. Placeholders and user files are exempt."""
    project = render(features=["editors"])
    text = (project / "AGENTS.md").read_text("utf-8")
    named = re.findall(r"`([\w.][\w./]*)`", text)
    named += re.findall(r"(?:pytest|python) ([\w/]+(?:\.py)?)", text)
    headers = {path.name for path in files(project) if path.suffix == ".h"}
    yours = {"csrc/operators", "tests/operators"}
    paths = {it for it in named if "/" in it or it.endswith((".md", ".h", ".yml"))} - yours
    assert len(paths) > 20
    missing = [path for path in paths if not (project / path).exists() and path not in headers]
    assert sorted(missing) == ["ATen/ATen.h", "ATen/ops/add.h", "torch/extension.h"]


def test_sources_do_not_include_headers_of_all_operators(render: Renderer) -> None:
    project = render(preset="full")
    sources = [path for path in (project / "csrc").rglob("*") if path.suffix in (".cpp", ".h")]
    assert len(sources) > 100
    whole = re.compile(
        r"#include <(ATen/(ATen|Functions|NativeFunctions)|torch/(extension|torch|all))\.h>"
    )
    assert [str(path) for path in sources if whole.search(path.read_text("utf-8"))] == []


def rows(project: Path, provider: str) -> list[dict[str, str]]:
    """Return each job that builds wheels: its PyTorch, its runner, and the builds that it skips."""
    if provider == "github":
        job = read(project / ".github" / "workflows" / "release.yml")["jobs"]["wheels"]
        matrix = job["strategy"]["matrix"]
        skip = re.search(r"torch == '([\d.]+)' && '(\S+)'", str(job["steps"]))
        assert skip
        return [
            {"torch": torch, "runner": runner, "skip": skip[2] if torch == skip[1] else ""}
            for torch, runner in product(matrix["torch"], matrix["runner"])
        ]
    job = read(project / ".gitlab" / "release.yml")["wheels"]
    return [
        {"torch": torch, "runner": runner, "skip": part.get("CIBW_SKIP", [""])[0]}
        for part in job["parallel"]["matrix"]
        for torch, runner in product(part["TORCH"], part["RUNNER"])
    ]


def test_a_release_has_wheels_for_every_pytorch_python_and_processor(
    project: Path, provider: str
) -> None:
    settings = toml(project / "cibuildwheel.toml")
    patterns = settings["tool"]["cibuildwheel"]["build"]
    built = {
        (row["torch"], python, PROCESSORS[row["runner"]])
        for row in rows(project, provider)
        for python in map(str, range(0, 100))
        if any(
            fnmatch(f"cp3{python}-manylinux_{PROCESSORS[row['runner']]}", pattern)
            for pattern in patterns
        )
        and not fnmatch(f"cp3{python}-manylinux_", row["skip"])
    }
    wanted = {
        (torch, python.removeprefix("3."), processor)
        for torch, python, processor in product(
            WINDOW["versions"], WINDOW["python"], set(PROCESSORS.values())
        )
        if (torch, python) not in NONE
    }
    assert built == wanted


@pytest.mark.parametrize("torch", WINDOW["versions"])
def test_the_wheel_version_names_pytorch_unless_it_is_the_tested_one(
    torch: str, render: Renderer, tmp_path: Path
) -> None:
    project = render(preset="full")
    settings = toml(project / "cibuildwheel.toml")
    text = (project / "pyproject.toml").read_text("utf-8")
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    before = settings["tool"]["cibuildwheel"]["before-all"]
    succeed("sh", "-c", before, cwd=tmp_path, TORCH=torch)
    version = "0.1.0" if torch == TESTED else f"0.1.0+torch{torch}"
    assert toml(tmp_path / "pyproject.toml")["project"]["version"] == version
    after = (tmp_path / "pyproject.toml").read_text("utf-8")
    assert after.replace(version, "0.1.0") == text


def test_pre_commit_has_the_tools_of_the_lint_job(project: Path, provider: str) -> None:
    config = project / ".pre-commit-config.yaml"
    succeed("pre-commit", "validate-config", config)
    (repository,) = read(config)["repos"]
    tools = {tool for hook in repository["hooks"] for tool in hook["additional_dependencies"]}
    ci = {"github": ".github/workflows/ci.yml", "gitlab": ".gitlab-ci.yml"}[provider]
    text = (project / ci).read_text("utf-8")
    assert tools == set(re.findall(r"(?:ruff|clang-format)==[\d.]+", text))


def test_pre_commit_hooks_pass_in_a_fresh_project(render: Renderer, tmp_path: Path) -> None:
    """The tools come from this environment, which has the same versions."""
    project = render.project(tmp_path / "project", preset="full")
    hooks = read(project / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    for hook in hooks:
        kinds = ("py", "pyi") if "types_or" in hook else ("cpp", "h")
        pattern = hook.get("files", r"\.(py|pyi)$")
        names = [str(path) for path in files(project) if re.search(pattern, str(path))]
        assert {Path(name).suffix[1:] for name in names} == set(kinds)
        program, *arguments = hook["entry"].split()
        succeed(program, *arguments, *names, cwd=project)
    assert git(project, "diff", "--name-only") == ""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("preset", "flag"),
    [("debug", "-g"), ("release", "-O3"), ("asan", "-fsanitize=address,undefined"),
     ("tsan", "-fsanitize=thread")],
)  # fmt: skip
def test_a_cmake_preset_sets_its_flags(
    preset: str, flag: str, render: Renderer, tmp_path: Path
) -> None:
    project = render(preset="full")
    succeed(
        "cmake", "--preset", preset, "-S", project, "-B", tmp_path / "build",
        f"-DPython_EXECUTABLE={sys.executable}", cwd=project,
    )  # fmt: skip
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text("utf-8"))
    assert sum(flag in one["command"].split() for one in commands) > 5
    built = json.loads((project / "CMakePresets.json").read_text("utf-8"))["buildPresets"]
    assert preset in {row["configurePreset"] for row in built}


def test_editors_files_are_json(project: Path) -> None:
    container = json.loads((project / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert f"torch=={WINDOW['tested']}" in container["onCreateCommand"]
    assert json.loads((project / ".vscode" / "extensions.json").read_text("utf-8"))
