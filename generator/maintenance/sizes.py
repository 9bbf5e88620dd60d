"""Measures the core, each feature and each preset: generator/catalog/sizes.yml.

`python -m maintenance.sizes` counts the files and lines of a render, and also writes them into the
choices of presets. A file of two features counts for the one that owns it. With `--build`, it also
measures the CPU seconds of clean builds of the presets, in this environment.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from torchsmith import catalog
from torchsmith.render import Job, render
from torchsmith.template import CATALOG

FILE = CATALOG / "sizes.yml"
QUESTIONS = CATALOG / "questions.yml"
PACKAGE = "torch_foo"
HEAD = "# Files and lines of the parts; of presets also the CPU seconds of a clean build.\n"


def counted(project: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the files and the lines of each part of a project."""
    files, lines = Counter[str](), Counter[str]()
    for path in project.rglob("*"):
        if path.is_file():
            owner = (
                catalog.owner(PurePosixPath(path.relative_to(project)), catalog.places(PACKAGE))
                or "core"
            )
            files[owner] += 1
            lines[owner] += path.read_bytes().count(b"\n")
    return files, lines


def sizes(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """Return the sizes of the parts and of the presets, which are rendered into ``folder``."""
    found: dict[str, dict[str, dict[str, int]]] = {"parts": {}, "presets": {}}
    for preset, _ in sorted(catalog.presets().items(), key=lambda item: len(item[1])):
        project = folder / preset
        render(project, Job({"preset": preset}))
        files, lines = counted(project)
        total = {"files": files.total(), "lines": lines.total()}
        found["presets"][preset] = total
        if preset == "full":
            for id in ("core", *catalog.features()):
                found["parts"][id] = {"files": files[id], "lines": lines[id]}
    return found


def build_seconds(project: Path, folder: Path) -> int:
    """Return the CPU seconds of a clean build, without a compiler cache."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [
            *command,
            "--wheel-dir",
            folder,
            "-C",
            "cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=",
            project,
        ],
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Write the file."""
    known: dict[str, Any] = catalog.load("sizes")["sizes"]["default"]
    # A new feature needs a row before it can be rendered.
    write(
        {
            **known,
            "parts": {id: {"files": 0, "lines": 0} for id in catalog.features()} | known["parts"],
        }
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = sizes(folder)
        for preset, row in found["presets"].items():
            if "--build" in sys.argv:
                row["build"] = build_seconds(folder / preset, folder / "wheels")
            elif "build" in known.get("presets", {}).get(preset, {}):
                row["build"] = known["presets"][preset]["build"]
    write(found)
    QUESTIONS.write_text(with_sizes(QUESTIONS.read_text("utf-8"), found["presets"]), "utf-8")


def write(found: Mapping[str, Any]) -> None:
    """Write sizes.yml."""
    content = {"sizes": {"when": False, "type": "yaml", "default": dict(found)}}
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
    FILE.write_text(HEAD + text, "utf-8")


def with_sizes(questions: str, presets: Mapping[str, Mapping[str, int]]) -> str:
    """Return questions.yml with the size of each preset at the end of its choice."""
    for id, size in presets.items():
        build = f", {size['build']} s to build" if "build" in size else ""
        told = f" ({size['files']:,} files, {size['lines']:,} lines{build})"
        choice = rf'^(    "[^"(]*?)(?: \(.*\))?": {id}$'
        questions, count = re.subn(choice, rf'\1{told}": {id}', questions, flags=re.MULTILINE)
        assert count == 1, id
    return questions


if __name__ == "__main__":
    main()
