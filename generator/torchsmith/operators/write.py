"""Writes the files of an operator into a project that does not have it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchsmith.errors import InputError
from torchsmith.files import write_texts
from torchsmith.operators import code
from torchsmith.operators.schema import Operator
from torchsmith.project import Project

# The template has no files in these folders, so updates cannot conflict there.
KERNEL_FOLDER = "csrc/operators"
TEST_FOLDER = "tests/operators"
DOCS_PAGE = "docs/own-operators.md"


@dataclass(frozen=True)
class Added:
    """The written files.

    Attributes:
        operator: Its name.
        kind: "family" if a kernel family computes it, "structured" if ATen does all but the
            computation, "function" otherwise.
        kernel: The C++ file.
        line: The line of the missing body, or 0.
        test: The test file.
        docs: The page with its row.
        feature: A feature that the project lacks and that has the operator, or "".
    """

    operator: str
    kind: Literal["family", "structured", "function"]
    kernel: str
    line: int
    test: str
    docs: str
    feature: str


def write_operator(project: Project, operator: Operator) -> Added:
    """Write an operator into a project.

    Raises:
        InputError: The project already has a kernel for it, or one of the files.
        OSError: The files cannot be written; the project is unchanged.
    """
    name = str(project.answers["backend_name"])
    kernel_file = f"{KERNEL_FOLDER}/{operator.identifier}.cpp"
    test_file = f"{TEST_FOLDER}/test_{operator.identifier}.py"
    header = project.root / "device" / "include" / name / "device" / "elementwise.h"
    fitting = code.fit(operator, header)
    docs = project.root / DOCS_PAGE

    def texts() -> dict[str, str]:
        if there := _registered(project, operator):
            raise InputError(f"'{operator.name}' is there already: {there}")
        for path in (kernel_file, test_file):
            if (project.root / path).exists():
                raise InputError(f"'{path}' already exists: remove it first")
        page = (docs if docs.exists() else code.FILES / docs.name).read_text("utf-8").rstrip()
        text = code.kernel_code(operator, kernel_file, f"torch_{name}", fitting)
        return {
            kernel_file: _formatted(project, kernel_file, text),
            test_file: code.test_code(operator),
            DOCS_PAGE: f"{page}\n| `{operator.name}` | `{kernel_file}` | `{test_file}` |\n",
        }

    written = write_texts(project.root, texts)
    lines = written[kernel_file].splitlines()
    body = next((number for number, line in enumerate(lines, 1) if "has no body yet" in line), 0)
    return Added(
        operator=operator.name,
        kind="family" if fitting else "structured" if operator.structured else "function",
        kernel=kernel_file,
        line=body,
        test=test_file,
        docs=DOCS_PAGE,
        feature=_feature_with(project, operator),
    )


def _formatted(project: Project, path: str, text: str) -> str:
    """Format a C++ file as the project does, if clang-format is installed."""
    beside = Path(sys.executable).with_name("clang-format")
    program = shutil.which("clang-format") or shutil.which(beside)
    if program is None:
        return text
    command = [program, f"--assume-filename={path}"]
    done = subprocess.run(
        command, cwd=project.root, input=text, capture_output=True, encoding="utf-8"
    )
    return done.stdout if done.returncode == 0 else text


def _feature_with(project: Project, operator: Operator) -> str:
    """Return a feature that the project lacks and that has the operator, or ""."""
    package = f"torch_{project.answers['backend_name']}"
    listed = project.root / "python" / package / "_operators.json"
    features = json.loads(listed.read_text("utf-8")) if listed.exists() else {}
    having = (id for id, names in features.items() if operator.base in names.split())
    return next(having, "")


def _registered(project: Project, operator: Operator) -> str:
    """Return where one of the operator's functions is registered, as file:line, or ""."""
    names = "|".join(re.escape(function.name) for function in operator.functions)
    pattern = re.compile(rf'(impl\(|structured<|, )"({names})"')
    files = (file for file in (project.root / "csrc").rglob("*.cpp") if file.is_file())
    for file in sorted(files):
        text = file.read_text("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                return f"{file.relative_to(project.root).as_posix()}:{number}"
    return ""
