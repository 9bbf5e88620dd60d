"""The headers and Python sources of a PyTorch release, from one of its wheels."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

from torchsmith import catalog
from torchsmith.errors import InputError

AARCH64 = "manylinux_2_28_aarch64"
"""The other platform that a rendered project supports."""

# The oldest and the newest macOS that the wheels of the supported releases are built for.
_SMALLEST = ("macosx_11_0_arm64", "macosx_14_0_arm64")


def sources(minor: str, platform: str | None = None) -> Path:
    """Return a folder that holds ``torch/`` of the newest release of a minor version.

    It is downloaded once; delete the folder to get a newer patch release. Without a ``platform``
    the smallest wheel is used.
    """
    supported = catalog.torch_window()["versions"]
    if minor not in supported:
        raise InputError(
            f"PyTorch {minor} is outside the versions of a rendered project: "
            f"choose from {', '.join(supported)}"
        )
    folder = user_cache_path("torchsmith", appauthor=False) / "-".join(
        filter(None, (f"torch-{minor}", platform))
    )
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            part = Path(scratch) / "part"
            platforms = (platform,) if platform else _SMALLEST
            _extract(_download(minor, platforms, Path(scratch)), part)
            shutil.move(part, folder)
    return folder


def _download(minor: str, platforms: tuple[str, ...], folder: Path) -> Path:
    """Download the wheel and return its path."""
    options = [f"--platform={platform}" for platform in platforms]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
         *options, "--python-version=3.11", f"--dest={folder}", f"torch=={minor}.*"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    wheels = list(folder.glob("torch-*.whl"))
    if done.returncode or not wheels:
        raise InputError(f"PyTorch {minor} cannot be downloaded: {done.stderr.strip()[-300:]}")
    return wheels[0]


def _extract(wheel: Path, folder: Path) -> None:
    """Extract the headers and the Python sources, a tenth of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        wanted = [
            name
            for name in archive.namelist()
            if name.startswith("torch/include/")
            or (name.startswith("torch/") and name.endswith((".py", ".pyi")))
        ]
        archive.extractall(folder, wanted)
