"""The files of a new device."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from torchsmith.devices import header
from torchsmith.devices.steps import STEPS, TESTS
from torchsmith.errors import InputError
from torchsmith.files import write_texts
from torchsmith.project import Project

TEMPLATES = Path(__file__).with_name("files")
"""Its files, with what differs between devices between @ signs."""
FILES = ("runtime.cpp", "kernels/fill.cpp", "device.cmake", "support.toml")


def write(project: Project, device: str) -> list[str]:
    """Write the folder of a new device into a project, and return its files.

    Raises:
        InputError: The name is none for a device, or its folder exists.
        OSError: The system refuses; the project is as it was.
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
    write_texts(project.root, files)
    return [*files]


def _functions(root: Path, name: str) -> str:
    """Return the functions of the project's own header, in its order, to be filled in."""
    functions = header.read(root / "device" / "include" / name / "device" / "runtime.h")
    # Those that every device library has are defined beside the devices.
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
