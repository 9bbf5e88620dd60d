"""Builds each rendered project once per run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rendering import Renderer
from torchsmith.smoke.installing import Installed, environment


@pytest.fixture(scope="session")
def install(render: Renderer, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Installed]:
    """Render, build and install a project as its user does, edited or not; each once per run."""
    pytest.importorskip("torch", reason="a backend is built against PyTorch")
    done: dict[str, Installed] = {}

    def install(
        name: str, edit: Callable[[Path], None] | None = None, **answers: object
    ) -> Installed:
        if name not in done:
            folder = tmp_path_factory.mktemp(name)
            # A copy, since the build writes into the project.
            project = folder / "project"
            shutil.copytree(render(**answers), project)
            if edit is not None:
                edit(project)
            installed = Installed(name, project, environment(folder / "venv"))
            build = installed.build()
            assert build.returncode == 0, build.stdout[-8000:] + build.stderr[-8000:]
            done[name] = installed
        return done[name]

    return install
