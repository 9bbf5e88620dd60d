"""A version that stands in several places is the same in all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import torchsmith
from rendering import ROOT, Renderer
from torchsmith import catalog
from torchsmith.template import CATALOG

TESTED = catalog.load("torch")["torch_window"]["default"]["tested"]
WINDOW = catalog.load("torch")["torch_window"]["default"]["versions"]
RECOMMENDED = r"pip install 'torch==([\d.]+)\.\*' .*# any from ([\d.]+) on"


def found(file: Path, pattern: str) -> set[Any]:
    return set(re.findall(pattern, file.read_text("utf-8")))


@pytest.mark.parametrize("file", ["Makefile", "docs/getting-started.md"])
def test_our_own_pytorch(file: str) -> None:
    assert found(ROOT / file, r"(?:TESTED := |PyTorch )(\d+\.\d+\.\d+)") == {TESTED}


def test_the_newest_pytorch_is_recommended(render: Renderer) -> None:
    newest = {(WINDOW[-1], WINDOW[0])}
    for file in ("README.md", "docs/getting-started.md"):
        assert found(ROOT / file, RECOMMENDED) == newest
    assert found(render(preset="full") / "README.md", RECOMMENDED) == newest


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_what_the_rendered_ci_installs(provider: str, render: Renderer) -> None:
    project = render(preset="full", ci_provider=provider)
    file = {"github": ".github/workflows/ci.yml", "gitlab": ".gitlab-ci.yml"}[provider]
    assert found(project / file, r"torch==([\d.]+)") == {TESTED}
    pins = found(ROOT / "pyproject.toml", r'"((?:ruff|clang-format)==[\d.]+)"')
    assert len(pins) == 2
    assert found(project / file, r"((?:ruff|clang-format)==[\d.]+)") == pins


def test_pytorch_is_inside_its_window_and_reserved_names_are_its_own() -> None:
    assert ".".join(TESTED.split(".")[:2]) in WINDOW
    assert f"torch {TESTED}." in (CATALOG / "reserved.yml").read_text("utf-8")


def test_what_runs_on_the_cpu_is_said_of_the_tested_pytorch() -> None:
    known = ROOT / "template" / "tests" / "conformance" / "known.toml"
    assert found(known, r'torch = "([\d.]+)"') == {".".join(TESTED.split(".")[:2])}


def test_our_version_has_an_entry_in_the_changelog() -> None:
    assert f"## {torchsmith.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
