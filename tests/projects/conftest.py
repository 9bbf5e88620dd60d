"""Builds each rendered project once per run, for all of its processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from filelock import FileLock

from commanding import succeed
from maintenance.installing import Installed, link_packages, make_environment
from rendering import ROOT, Renderer


def new(
    installed: Installed, template: Path, answers: Mapping[str, object]
) -> CompletedProcess[str]:
    """Render and build a project with `torchsmith new --build`."""
    given = [word for name, answer in answers.items() for word in ("-d", f"{name}={answer}")]
    return subprocess.run(
        [sys.executable, "-m", "torchsmith.cli", "new", str(installed.project), "--defaults",
         "--template", str(template), "--build", "--python", str(installed.python), *given],
        env={**installed.environment, "PYTHONPATH": str(ROOT / "generator")},
        capture_output=True,
        text=True,
    )  # fmt: skip


@pytest.fixture(scope="session")
def packages(shared: Path) -> Path:
    """Return the packages that every environment of this run shares."""
    folder = shared / "packages"
    with FileLock(shared / "packages.lock"):
        return folder if folder.exists() else link_packages(folder)


@pytest.fixture(scope="session")
def install(render: Renderer, packages: Path, shared: Path) -> Callable[..., Installed]:
    """Return a function that renders, builds and installs a project, each once per run."""

    def install(
        name: str,
        edit: Callable[[Path], None] | None = None,
        *,
        by_command: bool = False,
        **answers: object,
    ) -> Installed:
        folder = shared / "projects" / name
        said = folder / "built"
        installed = Installed(name, folder / "project", folder / "venv" / "bin" / "python")
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "lock"):
            if not said.exists():
                make_environment(folder / "venv", packages)
                if by_command:
                    build = new(installed, render.template, answers)
                else:
                    # The build writes into the project.
                    shutil.copytree(render(**answers), installed.project)
                    if edit is not None:
                        edit(installed.project)
                    build = installed.build()
                failed = build.stdout[-8000:] + build.stderr[-8000:]
                said.write_text(failed if build.returncode else "")
        assert said.read_text() == ""
        return installed

    return install


@pytest.fixture(scope="session")
def build_device() -> Callable[[Installed, str, Path], None]:
    """Return a function that builds only a project's device library, from any folder."""

    def build(project: Installed, device: str, folder: Path) -> None:
        where = ("-S", "device", "-B", folder, "-G", "Ninja", f"-DFOO_DEVICE={device}")
        for step in (where, ("--build", folder)):
            succeed("cmake", *step, cwd=project.project, **project.environment)

    return build
