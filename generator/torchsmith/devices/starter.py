"""The files of a new device."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from torchsmith.devices import header
from torchsmith.devices.steps import STEPS, TESTS
from torchsmith.errors import InputError
from torchsmith.project import Project
from torchsmith.swap import put

TEMPLATES = Path(__file__).with_name("files")
"""Templates of the files, with placeholders between @ signs."""
FILES = ("runtime.cpp", "kernels/fill.cpp", "device.cmake", "support.toml")


def write(project: Project, device: str) -> list[str]:
    """Write the folder of a new device into a project, and return its files.

    Raises:
        InputError: The name is not valid for a device, or its folder exists.
        OSError: The files cannot be written; the project is unchanged.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", device):
        raise InputError(
            f"'{device}' is no name for a device: begin with a small letter, and go on with small "
            "letters, digits and underscores, for instance acme"
        )
    folder = f"device/{device}"
    if (project.root / folder).exists():
        raise InputError(f"'{folder}' is there already: choose another name, or remove it first")
    name = str(project.answers["backend_name"])
    words = {
        "name": name,
        "prefix": name.upper(),
        "device": device,
        "SHOUT": device.upper(),
        "functions": _functions(project.root, name),
    }
    files = {}
    for file in FILES:
        text = (TEMPLATES / file).read_text("utf-8")
        for word, meaning in words.items():
            text = text.replace(f"@{word}@", meaning)
        files[f"{folder}/{file}"] = text
    put(project.root, files)
    return [*files]


def _functions(root: Path, name: str) -> str:
    """Return skeletons of the functions of the project's own header, in the same order."""
    functions = header.read(root / "device" / "include" / name / "device" / "runtime.h")
    # Functions that every device library shares are defined in the folder above the devices.
    common = "\n".join(file.read_text("utf-8") for file in (root / "device").glob("*.cpp"))
    text, group = "", ""
    for function in functions:
        if re.search(rf"\b{function.name}\(.*\{{", common):
            continue
        if function.group != group:
            group = function.group
            tests = f": device/tests/runtime/{TESTS[group]}" if group in TESTS else ""
            text += f"\n// --- {group}{tests} ---\n"
        text += "\n" + _function(function)
    return text


def _function(function: header.Function) -> str:
    comment = textwrap.wrap(STEPS.get(function.name, "See runtime.h."), 117)
    signature = f"{function.result}{function.name}({function.unused})"
    if function.may_throw:
        body = f' not_written("{function.name}"); '
    elif function.result.strip() == "void":
        comment.append("May not throw: does nothing until it is written.")
        signature += " noexcept"
        body = ""
    else:
        comment.append("May not throw: answers zero or null until it is written.")
        signature += " noexcept"
        body = " return {}; "
    return "".join(f"// {line}\n" for line in comment) + f"{signature} {{{body}}}\n"
