"""Rendered code passes the linters of the rendered project."""

from __future__ import annotations

from pathlib import Path

import pytest

from commanding import succeed
from rendering import HOSTILE, Renderer, files

PROJECTS = {
    "full": {"preset": "full"},
    "minimal": {"preset": "minimal"},
    "hostile": {"preset": "full", **HOSTILE},
}


@pytest.fixture(params=PROJECTS)
def project(request: pytest.FixtureRequest, render: Renderer) -> Path:
    return render(**PROJECTS[request.param])


# The C++ of `minimal` is a part of that of `full`.
@pytest.mark.parametrize("project", ["full", "hostile"], indirect=True)
def test_cxx_is_formatted(project: Path) -> None:
    sources = [str(path) for path in files(project) if path.suffix in (".cpp", ".h")]
    assert len(sources) > 20
    succeed("clang-format", "--dry-run", "-Werror", *sources, cwd=project)


def test_python_is_formatted_and_lint_free(project: Path) -> None:
    succeed("ruff", "format", "--check", "--no-cache", ".", cwd=project)
    succeed("ruff", "check", "--no-cache", ".", cwd=project)


# The types do not depend on names.
@pytest.mark.torch
@pytest.mark.parametrize("project", ["full", "minimal"], indirect=True)
def test_the_package_passes_mypy(project: Path, shared: Path) -> None:
    succeed("mypy", "--strict", f"--cache-dir={shared / 'mypy'}", "python", cwd=project)
