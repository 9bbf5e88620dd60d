"""The files of a new device."""

from __future__ import annotations

import re
from pathlib import Path

from torchsmith.devices import header
from torchsmith.devices.steps import (
    BODIES_WITH_HANDLES,
    STEPS,
    STEPS_WITH_HANDLES,
    TEST_FILES,
)
from torchsmith.errors import InputError
from torchsmith.files import write_texts
from torchsmith.jinja import environment
from torchsmith.project import Project

TEMPLATES = ("runtime.cpp.jinja", "kernels/fill.cpp.jinja", "device.cmake", "support.toml.jinja")
WITH_HANDLES = ("addresses.h.jinja",)


def write_device(project: Project, device: str, handles: bool = False) -> list[str]:
    """Write the folder of a new device into a project, and return its files.

    With ``handles`` it is for an SDK that has handles of buffers instead of addresses.

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
    known = {
        "name": name,
        "device": device,
        "functions": _to_write(project.root, name),
        "handles": handles,
        "steps": STEPS_WITH_HANDLES if handles else STEPS,
        "bodies": BODIES_WITH_HANDLES if handles else {},
        "tests": TEST_FILES,
    }
    templates = environment(Path(__file__).with_name("files"))
    files = {
        f"{folder}/{file.removesuffix('.jinja')}": templates.get_template(file).render(known)
        for file in (*TEMPLATES, *(WITH_HANDLES if handles else ()))
    }
    write_texts(project.root, files)
    return [*files]


def _to_write(root: Path, name: str) -> list[header.Declaration]:
    """Return what the project's own header declares, but for what all devices have in common."""
    declared = header.read(root / "device" / "include" / name / "device" / "runtime.h")
    common = "\n".join(file.read_text("utf-8") for file in (root / "device").glob("*.cpp"))
    return [each for each in declared if not re.search(rf"\b{each.name}\(.*\{{", common)]
