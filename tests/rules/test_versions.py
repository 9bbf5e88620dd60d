"""A version that occurs in several places is the same in all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import torchsmith
from rendering import ROOT, Renderer, files
from torchsmith import catalog
from torchsmith.template import CATALOG

TESTED = catalog.torch_window()["tested"]
WINDOW = catalog.torch_window()["versions"]


def found(file: Path, pattern: str) -> set[Any]:
    return set(re.findall(pattern, file.read_text("utf-8")))


@pytest.mark.parametrize("file", ["Makefile", "docs/getting-started.md", "docs/support.md"])
def test_the_makefile_and_docs_name_the_tested_pytorch(file: str) -> None:
    assert found(ROOT / file, r"(?:TESTED := |PyTorch )(\d+\.\d+\.\d+)") == {TESTED}


@pytest.mark.parametrize("project", ["ours", "github", "gitlab"])
def test_install_commands_name_the_tested_pytorch(project: str, render: Renderer) -> None:
    """Commands that install a fixed PyTorch version use the tested one."""
    folder = ROOT if project == "ours" else render(preset="full", ci_provider=project)
    names = ["README.md", "docs"] if project == "ours" else files(folder)
    listed = [path for name in names for path in (folder / name, *(folder / name).rglob("*.*"))]
    named = {
        (version, str(path.relative_to(folder)))
        for path in listed
        if path.is_file()
        for version in re.findall(rb"torch==(\d[\w.*]*)", path.read_bytes())
    }
    minor = ".".join(TESTED.split(".")[:2])
    assert {version.decode() for version, _ in named} <= {TESTED, f"{minor}.*"}, named
    assert "README.md" in {path for _, path in named}


def test_the_range_of_pytorch_is_that_of_the_catalog() -> None:
    pages = ("errors", "bring-up", "getting-started", "support")
    for file in ("README.md", *(f"docs/{page}.md" for page in pages)):
        ranges = found(ROOT / file, r"(2\.\d+) to (2\.\d+)")
        assert ranges == {(WINDOW[0], WINDOW[-1])}, file


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_the_rendered_ci_installs_the_tested_versions(provider: str, render: Renderer) -> None:
    project = render(preset="full", ci_provider=provider)
    file = {"github": ".github/workflows/ci.yml", "gitlab": ".gitlab-ci.yml"}[provider]
    assert found(project / file, r"torch==([\d.]+)") == {TESTED}
    pins = found(ROOT / "pyproject.toml", r'"((?:ruff|clang-format)==[\d.]+)"')
    assert len(pins) == 2
    assert found(project / file, r"((?:ruff|clang-format)==[\d.]+)") == pins


def test_requirements_build_lists_what_the_build_system_requires(render: Renderer) -> None:
    project = render(preset="minimal")
    listed = (project / "requirements-build.txt").read_text("utf-8").splitlines()
    build_system = (project / "pyproject.toml").read_text("utf-8").partition("build-backend")[0]
    required = re.findall(r'^  "(.+)",$', build_system, re.MULTILINE)
    assert {line for line in required if not line.startswith("torch")} <= {*listed}
    assert len(required) > 1


def test_the_tested_pytorch_is_supported_and_provided_the_reserved_words() -> None:
    assert ".".join(TESTED.split(".")[:2]) in WINDOW
    assert f"torch {TESTED}." in (CATALOG / "reserved.yml").read_text("utf-8")


def test_known_toml_names_the_tested_pytorch() -> None:
    known = ROOT / "template" / "tests" / "conformance" / "known.toml"
    assert found(known, r'torch = "([\d.]+)"') == {".".join(TESTED.split(".")[:2])}


def test_our_version_has_an_entry_in_the_changelog() -> None:
    assert f"## {torchsmith.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
