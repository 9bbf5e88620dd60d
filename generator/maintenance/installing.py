"""Building a rendered project into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Installed:
    """A project that was built and installed, and the Python that sees it."""

    name: str
    project: Path
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables for its user: PyTorch loads the backend, and PATH has the tools."""
        kept = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")
            and not key.startswith("PYTEST_")
        }
        return {**kept, "PATH": f"{self.python.parent}:{BIN}:{kept['PATH']}"}

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its Python in the project's folder."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=self.project,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
        )

    def build(self, **settings: str) -> subprocess.CompletedProcess[str]:
        """Build and install the project as its user does, with settings of CMake.

        Warnings are errors unless ``settings`` change that.
        """
        settings = {"CMAKE_COMPILE_WARNING_AS_ERROR": "ON", **settings}
        defines = [f"cmake.define.{name}={value}" for name, value in settings.items()]
        return subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(self.python), "install",
             "--no-build-isolation", "--no-deps",
             *(word for define in defines for word in ("-C", define)), "."],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
        )  # fmt: skip


def link_packages(folder: Path) -> Path:
    """Fill ``folder`` with links to this environment's packages, and return it.

    Backends are left out: PyTorch loads only one, and `make demo` installs one here.
    """
    folder.mkdir(parents=True)
    backends = {
        distribution.metadata["Name"].replace("-", "_")
        for distribution in distributions()
        if any(entry.group == "torch.backends" for entry in distribution.entry_points)
    }
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.suffix != ".pth" and not entry.name.startswith(tuple(backends)):
            (folder / entry.name).symlink_to(entry)
    return folder


def make_environment(folder: Path, packages: Path) -> Path:
    """Make a virtual environment that sees ``packages`` too, and return its Python.

    Environments that share the packages include the same headers by the same paths, so that they
    share the compiler's cache.
    """
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    scheme = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=scheme))
    (site / "packages.pth").write_text(f"{packages}\n", "utf-8")
    return folder / "bin" / "python"
