"""Installs the template's packages from a folder in each way that the README names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from maintenance.release.running import make_environment
from torchsmith import __version__
from torchsmith.errors import InputError

_NAMED = f"torchsmith=={__version__}"


def by_pip(packages: Path, folder: Path) -> str:
    """Return what the command prints after `pip install`."""
    environment = make_environment(folder / "pip")
    environment.install("--find-links", packages, _NAMED)
    return environment.run("torchsmith", "--version")


def by_pipx(packages: Path, folder: Path) -> str:
    """Return what the command prints by `pipx run`."""
    environment = make_environment(folder / "pipx")
    environment.install("pipx")
    places = {"PIPX_HOME": str(folder / "pipx-home"), "PIPX_BIN_DIR": str(folder / "pipx-bin")}
    options = ("--no-cache", "--pip-args", f"--find-links {packages}", "--spec", _NAMED)
    return environment.run("pipx", "run", *options, "torchsmith", "--version", variables=places)


def by_uvx(packages: Path, folder: Path) -> str:
    """Return what the command prints by `uvx`."""
    environment = make_environment(folder / "uv")
    environment.install("uv")
    places = {"UV_CACHE_DIR": str(folder / "uv-cache"), "UV_TOOL_DIR": str(folder / "uv-tools")}
    options = ("--find-links", packages, "--from", _NAMED)
    return environment.run("uvx", *options, "torchsmith", "--version", variables=places)


CHANNELS: dict[str, Callable[[Path, Path], str]] = {
    "pip": by_pip,
    "pipx run": by_pipx,
    "uvx": by_uvx,
}


def rehearse(channel: str, packages: Path, folder: Path) -> None:
    """Run the command by a channel.

    Raises:
        InputError: The command failed, or has another version than this one.
    """
    printed = CHANNELS[channel](packages.resolve(), folder)
    if f"torchsmith {__version__}" not in printed.splitlines():
        raise InputError(f"{channel} runs another torchsmith than {__version__}: {printed.strip()}")
