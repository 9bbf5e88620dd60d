"""The compile time of each translation unit of a build."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from maintenance.compat.cxx import sources_of_unity

TIMED = Path(__file__).with_name("timed.py")


@dataclass(frozen=True)
class Unit:
    """CPU seconds of one call of the compiler, and the source files that it read as one."""

    seconds: float
    sources: tuple[str, ...]


def launcher(log: Path) -> str:
    """Return the CMake option with which compilers log their times to ``log``."""
    return f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{TIMED};{log}"


def sources_of(written: Path, project: Path) -> tuple[str, ...]:
    """Return the sources behind an object file, relative to the project."""
    if written.suffix == ".gch":
        return ("csrc/precompiled.h",)
    unity = re.sub(r"(\.cxx)?\.o$", ".cxx", str(written))
    if "Unity" in unity and Path(unity).is_file():
        paths = sources_of_unity(Path(unity), project)
        return tuple(str(path.resolve().relative_to(project.resolve())) for path in paths)
    return (re.sub(r".*\.dir/(.*)\.o$", r"\1", str(written)),)


def read(log: Path, build: Path, project: Path) -> list[Unit]:
    """Return the units of a build, the slowest first."""
    units = []
    for line in log.read_text("utf-8").splitlines():
        seconds, written = line.split(" ", 1)
        units.append(Unit(float(seconds), sources_of(build / written, project)))
    return sorted(units, key=lambda unit: unit.seconds, reverse=True)


def markdown(units: list[Unit]) -> str:
    """Return the table of build times."""
    lines = ["| CPU seconds | compiled as one |", "|---:|---|"]
    for unit in units:
        names = ", ".join(f"`{source}`" for source in unit.sources)
        lines.append(f"| {unit.seconds:.1f} | {names} |")
    lines.append(f"| **{sum(unit.seconds for unit in units):.1f}** | all |")
    return "\n".join(lines) + "\n"


def page(units: list[Unit]) -> str:
    """Return build-times.md."""
    title = "# What a clean build of `full` compiles\n\n`make bench` measures it again.\n\n"
    return title + markdown(units)
