"""The files of a new device: those of the project's starter device, under another name.

With a dialect, kernels are the texts of `device/shared/text` instead of the starter's.
"""

from __future__ import annotations

import re
from functools import partial

from torchsmith import catalog
from torchsmith.errors import InputError, require_choice
from torchsmith.files import write_texts
from torchsmith.project import Project

STARTER = "starter"
TEXTS = "device/shared/text"
BUILD = """\
# The kernels of device/shared/text. TEXT_DIALECT is a .kernel file of this folder or of dialects/.
set(TEXT_DIALECT {dialect})
include("${{CMAKE_CURRENT_SOURCE_DIR}}/shared/text/text.cmake")

"""
"""The beginning of device.cmake with a dialect."""


def write_device(project: Project, device: str, dialect: str = "") -> list[str]:
    """Write the folder of a new device into a project, and return its files.

    Args:
        project: The project.
        device: The name of the device and of its folder.
        dialect: The language of the kernels, which the device compiles from `device/shared/text`.

    Raises:
        InputError: The name is not valid for a device, its folder exists, there is no starter, or
            no such dialect.
        OSError: The files cannot be written; the project is unchanged.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", device):
        raise InputError(
            f"'{device}' is not a valid device name: use a lower-case letter, then lower-case "
            "letters, digits and underscores, for instance acme"
        )
    return [*write_texts(project.root, partial(_texts, project, device, dialect))]


def _texts(project: Project, device: str, dialect: str) -> dict[str, str]:
    folder = f"device/{device}"
    if (project.root / folder).exists():
        raise InputError(f"'{folder}' already exists: choose another name, or remove it first")
    places = (place for feature in catalog.features().values() for place in feature.places(""))
    if any(place.parts[:2] == ("device", device) for place in places):
        raise InputError(f"'{folder}' is a folder of the template's features: choose another name")
    starter = project.root / "device" / STARTER
    if not (starter / "runtime.cpp").is_file():
        raise InputError(f"'{starter}' is missing: restore it with git")
    texts = {
        file.relative_to(starter).as_posix(): file.read_text("utf-8")
        for file in sorted(starter.rglob("*"))
        if file.is_file()
    }
    if dialect:
        texts = _with_texts(project, texts, dialect)
    return {f"{folder}/{path}": _renamed(text, device) for path, text in texts.items()}


def _with_texts(project: Project, starter: dict[str, str], dialect: str) -> dict[str, str]:
    """Return the starter's files without its kernels, for kernels of a dialect."""
    folder = project.root / TEXTS
    dialects = sorted(file.stem for file in (folder / "dialects").glob("*.kernel"))
    if not dialects:
        raise InputError(
            f"the project has no '{TEXTS}': run {project.go_to}torchsmith add kernel_texts"
        )
    require_choice("dialect", dialect, dialects, f"choose from {', '.join(dialects)}")
    kept = {
        path: text
        for path, text in starter.items()
        if not path.startswith("kernels/") and path != "support.toml"
    }
    kept["device.cmake"] = BUILD.format(dialect=dialect) + kept["device.cmake"]
    return {**kept, "text.cpp": (folder / "skeleton" / "text.cpp").read_text("utf-8")}


def _renamed(text: str, device: str) -> str:
    """Return a text with the device's name in place of the starter's, in each spelling."""
    for spell in (str.lower, str.upper, str.capitalize):
        text = text.replace(spell(STARTER), spell(device))
    return text
