"""Checks whether this machine can build a backend: one finding with a fix for each tool."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packaging.version import Version

from torchsmith import catalog, git
from torchsmith.errors import InputError

Status = Literal["ok", "warning", "problem"]

# Runs in the Python that builds, which may differ from the one that runs torchsmith.
_PROBE = """
import importlib.metadata, json, os, sys, sysconfig
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
names = "torch pip pybind11 scikit-build-core scipy-openblas32 cmake ninja".split()
header = os.path.join(sysconfig.get_path("include"), "Python.h")
backends = {entry.value for each in importlib.metadata.distributions()
            for entry in each.entry_points if entry.group == "torch.backends"}
print(json.dumps({
    "python": sys.version.split()[0], "scripts": sysconfig.get_path("scripts"),
    "header": os.path.exists(header), "backends": sorted(backends),
    **{name: version(name) for name in names},
}))
"""
_CXX20 = """
#include <concepts>
#include <span>
template <std::integral T> constexpr T twice(T value) { return value + value; }
static_assert(twice(2) == 4);
int main() { return static_cast<int>(std::span<int>().size()); }
"""


@dataclass(frozen=True)
class Finding:
    """The result of one check, and the fix if it is not ok."""

    check: str
    status: Status
    found: str
    fix: str = ""


def default_python() -> str:
    """Return the Python of the active environment, or our own."""
    active = os.environ.get("VIRTUAL_ENV")
    python = Path(active or "", "bin", "python")
    return str(python) if active and python.exists() else sys.executable


def toolchain(python: str) -> list[Finding]:
    """Check everything that a build needs.

    Raises:
        InputError: ``python`` is not a Python interpreter.
    """
    program = Path(shutil.which(python) or python).absolute()
    try:
        probe = subprocess.run(
            [program, "-c", _PROBE],
            capture_output=True,
            text=True,
            check=True,
            # With -c, Python imports modules from the current folder.
            cwd=program.anchor,
        )
        has = json.loads(probe.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise InputError(f"'{python}' does not run as Python: name one with --python") from error
    return [
        _python(has, python),
        _torch(has, python),
        _package(has, python, "pip", shlex.join([python, "-m", "ensurepip"])),
        _package(has, python, "pybind11"),
        _package(has, python, "scikit-build-core"),
        _package(has, python, "scipy-openblas32", status="warning"),
        _compiler(),
        _tool(has, python, "cmake", "3.22"),
        _tool(has, python, "ninja", "1.8"),
        _git(),
        _ccache(),
        _backends(has),
    ]


def fixes(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Return checks with their fixes; the last fix installs all packages that pip can install."""
    pip = {each.check: each.fix for each in findings if _PIP in each.fix}
    found = [(each.check, each.fix) for each in findings if each.fix and each.check not in pip]
    if pip:
        packages = (fix.partition(_PIP)[2] for fix in pip.values())
        start, how, _ = next(iter(pip.values())).partition(_PIP)
        found.append((", ".join(pip), start + how + " ".join(packages)))
    return found


_PIP = " -m pip install "


def _install(python: str, package: str) -> str:
    """Return a shell command that installs a package."""
    return f"{shlex.quote(python)}{_PIP}{shlex.quote(package)}"


def _python(has: dict[str, Any], python: str) -> Finding:
    window = catalog.torch_window()["python"]
    found = f"{has['python']} ({python})"
    if ".".join(has["python"].split(".")[:2]) not in window:
        return Finding("python", "problem", found, f"use Python {window[0]} to {window[-1]}")
    if not has["header"]:
        return Finding("python", "problem", f"{found} without Python.h", "install python3-dev")
    return Finding("python", "ok", found)


def _torch(has: dict[str, Any], python: str) -> Finding:
    window = catalog.torch_window()
    install = _install(python, f"torch=={window['tested']}")
    if has["torch"] is None:
        return Finding("torch", "problem", "not installed", install)
    if ".".join(has["torch"].split(".")[:2]) not in window["versions"]:
        return Finding("torch", "problem", has["torch"], install)
    return Finding("torch", "ok", has["torch"])


def _package(
    has: dict[str, Any], python: str, name: str, fix: str = "", status: Status = "problem"
) -> Finding:
    if has[name] is None:
        return Finding(name, status, "not installed", fix or _install(python, name))
    return Finding(name, "ok", has[name])


def _tool(has: dict[str, Any], python: str, name: str, least: str) -> Finding:
    path = os.pathsep.join([has["scripts"], os.environ.get("PATH", "")])
    program = shutil.which(name, path=path)
    fix = _install(python, f"{name}>={least}")
    if program is None:
        return Finding(name, "problem", "not installed", fix)
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"\d+(\.\d+)+", said)
    if version is None or Version(version[0]) < Version(least):
        return Finding(name, "problem", f"{version[0] if version else said} ({program})", fix)
    return Finding(name, "ok", f"{version[0]} ({program})")


def _compiler() -> Finding:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    program = next(filter(None, map(shutil.which, names)), None)
    fix = "install g++ 12 or newer, or set CXX"
    if program is None:
        return Finding("C++ compiler", "problem", f"none of {', '.join(names)} is there", fix)
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = said.splitlines()[0] if said else program
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "cxx20.cpp"
        source.write_text(_CXX20)
        command = [program, "-std=c++20", "-fsyntax-only", str(source)]
        if subprocess.run(command, capture_output=True).returncode:
            return Finding("C++ compiler", "problem", f"{found}, which lacks C++20", fix)
    return Finding("C++ compiler", "ok", found)


def _git() -> Finding:
    if (program := shutil.which("git")) is None:
        return Finding("git", "problem", "not installed", "install git, which updates need")
    if version := git.too_old():
        return Finding("git", "problem", version, f"install git {git.NEEDED}, which updates need")
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return Finding("git", "ok", said.strip().removeprefix("git version "))


def _ccache() -> Finding:
    if (program := shutil.which("ccache")) is None:
        return Finding(
            "ccache", "warning", "not installed", "install ccache: rebuilds take seconds"
        )
    return Finding("ccache", "ok", program)


def _backends(has: dict[str, Any]) -> Finding:
    names = [value.partition(":")[0] for value in has["backends"]]
    if len(names) > 1:
        found = f"{' and '.join(names)} are installed, and PyTorch loads only one"
        return Finding("backends", "warning", found, "build in a separate environment")
    return Finding("backends", "ok", ", ".join(names) or "none is installed yet")
