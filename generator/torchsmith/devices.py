"""The files of a new device: those of the project's starter device, under another name."""

from __future__ import annotations

import re

from torchsmith.errors import InputError
from torchsmith.files import write_texts
from torchsmith.project import Project

STARTER = "starter"


def write_device(project: Project, device: str) -> list[str]:
    """Write the folder of a new device into a project, and return its files.

    Raises:
        InputError: The name is not valid for a device, its folder exists, or there is no starter.
        OSError: The files cannot be written; the project is unchanged.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", device):
        raise InputError(
            f"'{device}' is not a valid device name: use a lower-case letter, then lower-case "
            "letters, digits and underscores, for instance acme"
        )
    folder = f"device/{device}"
    if (project.root / folder).exists():
        raise InputError(f"'{folder}' already exists: choose another name, or remove it first")
    starter = project.root / "device" / STARTER
    if not (starter / "runtime.cpp").is_file():
        raise InputError(f"'{starter}' is missing: restore it with git")
    files = {
        f"{folder}/{file.relative_to(starter).as_posix()}": _renamed(
            file.read_text("utf-8"), device
        )
        for file in sorted(starter.rglob("*"))
        if file.is_file()
    }
    write_texts(project.root, files)
    return [*files]


def _renamed(text: str, device: str) -> str:
    """Return a text with the device's name in place of the starter's, in each spelling."""
    for spell in (str.lower, str.upper, str.capitalize):
        text = text.replace(spell(STARTER), spell(device))
    return text
