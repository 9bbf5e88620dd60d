"""Checks a rendered project's C++ against the headers of a PyTorch release."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from torchsmith.errors import InputError

CROSS = "aarch64-linux-gnu-g++"
"""The compiler for aarch64, from Debian's package g++-aarch64-linux-gnu."""


@dataclass(frozen=True)
class Group:
    """Source files that are compiled together, with the command."""

    name: str
    files: tuple[Path, ...]
    command: tuple[str, ...]
    folder: Path


def configure(project: Path, build: Path, torch: Path, *, aarch64: bool = False) -> list[Group]:
    """Configure a project for the PyTorch in ``torch``; return its groups above the seam.

    The commands are CMake's, with the flags of a real debug build. For aarch64, the sources below
    the seam are included.

    Raises:
        InputError: CMake is missing or fails.
    """
    command = [
        "cmake", "-G", "Ninja", "-S", str(project), "-B", str(build),
        f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        "-DCMAKE_CXX_COMPILER_LAUNCHER=",
    ]  # fmt: skip
    if aarch64:
        command += [
            "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
            f"-DCMAKE_CXX_COMPILER={CROSS}",
            # CMake runs no interpreter for this when it compiles for another processor.
            f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}",
        ]  # fmt: skip
    done = _run_tool(command, PYTHONPATH=str(torch))
    if done.returncode:
        raise InputError(f"CMake does not configure for '{torch}': {_reason(done.stderr)}")
    folders = ["csrc", "device"] if aarch64 else ["csrc"]
    return list(_groups(project, build, [project / folder for folder in folders]))


def precompile(build: Path) -> str:
    """Precompile the header that all groups include, which takes longer than most of them.

    Returns:
        The compiler's messages if it does not compile.

    Raises:
        InputError: Ninja is missing.
    """
    headers = {
        str(path.relative_to(build)).removesuffix(".cxx") + ".gch"
        for path in build.glob("CMakeFiles/*/cmake_pch.hxx.cxx")
    }
    done = _run_tool(["ninja", "-C", str(build), *sorted(headers)])
    return done.stdout.strip() if done.returncode else ""


def check(groups: list[Group], jobs: int) -> Iterator[tuple[Group, str]]:
    """Check the syntax of each group; yield it with the compiler's messages."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(groups, pool.map(_complaints, groups), strict=True)


def uncovered(project: Path, groups: list[Group]) -> set[Path]:
    """Return the C++ files above the seam that no group compiles."""
    compiled = {file for group in groups for file in group.files}
    return set((project / "csrc").rglob("*.cpp")) - compiled


def sources_of_unity(unity: Path, project: Path) -> list[Path]:
    """Return the sources that a unity file of CMake's includes."""
    included = re.findall(r'^#include "(.+)"', unity.read_text("utf-8"), re.M)
    # Older CMakes write paths relative to that file, newer ones relative to the project.
    places = (unity.parent, project)
    paths = (place / name for name in included for place in places)
    return [Path(os.path.normpath(path)) for path in paths if path.is_file()]


def _run_tool(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise InputError(f"{command[0]} is not installed: pip install {command[0]}") from error


def _reason(said: str) -> str:
    """Return CMake's first error on one line."""
    # Its lines are indented.
    first = re.search(r"^CMake Error(?: at .*)?:(.*\n(?:(?:[ \t].*)?\n)*)", said, re.M)
    return " ".join((first[1] if first else said).split())


def _groups(project: Path, build: Path, folders: list[Path]) -> Iterator[Group]:
    for entry in json.loads((build / "compile_commands.json").read_text("utf-8")):
        file = Path(entry["file"])
        files = sources_of_unity(file, project) if file.name.startswith("unity_") else [file]
        if all(any(folder in path.parents for folder in folders) for path in files):
            command = shlex.split(entry["command"])
            output = command.index("-o")
            del command[output : output + 2]
            command[command.index("-c")] = "-fsyntax-only"
            target = (
                file.relative_to(build).parts[1].removesuffix(".dir")
                if file.is_relative_to(build)
                else ""
            )
            name = f"{target} {file.stem.removeprefix('unity_').removesuffix('_cxx')}".strip()
            yield Group(name, tuple(files), tuple(command), Path(entry["directory"]))


def _complaints(group: Group) -> str:
    done = subprocess.run(group.command, cwd=group.folder, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""
