"""Rendered code is clean under the tools that the rendered project itself uses."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from rendering import HOSTILE, Renderer, files

PROJECTS = {
    "full": {"preset": "full"},
    "minimal": {"preset": "minimal"},
    "hostile": {"preset": "full", **HOSTILE},
}


@pytest.fixture(params=PROJECTS)
def project(request: pytest.FixtureRequest, render: Renderer) -> Path:
    return render(**PROJECTS[request.param])


def run(project: Path, program: str, *arguments: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_cxx_is_formatted(project: Path) -> None:
    sources = [str(path) for path in files(project) if path.suffix in (".cpp", ".h")]
    assert len(sources) > 20
    run(project, "clang-format", "--dry-run", "-Werror", *sources)


def test_python_is_formatted_and_lint_free(project: Path) -> None:
    run(project, "ruff", "format", "--check", "--no-cache", ".")
    run(project, "ruff", "check", "--no-cache", ".")


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="the types of the package are PyTorch's"
)
def test_the_package_is_typed(project: Path, shared: Path) -> None:
    run(project, "mypy", "--strict", f"--cache-dir={shared / 'mypy'}", "python")
