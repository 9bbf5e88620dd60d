"""`torchsmith device`: devices of a project's own."""

from __future__ import annotations

import subprocess
from typing import Annotated

import typer

from torchsmith.commands.common import (
    BuildPython,
    Command,
    Commands,
    Json,
    ProjectFolder,
    print_json,
    tell,
)
from torchsmith.errors import InputError

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def device() -> None:
    """Start and check your own device in a project.

    Example: torchsmith device new acme
    """


@app.command("new", cls=Command)
def new_device(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the device and of its folder.", show_default=False
        ),
    ],
    text: Annotated[
        str,
        typer.Option(
            "--text",
            metavar="DIALECT",
            help="Use kernels that the SDK compiles from this language: cuda, glsl (for Vulkan) or "
            "opencl. Needs the feature kernel_texts.",
            show_default=False,
        ),
    ] = "",
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Start your own device: copy the project's starter device under another name.

    Example: torchsmith device new acme

    The copy works without changes. A comment above each function describes it for a chip. With
    --text, the kernels are those of device/shared/text. They run when you have written compile()
    and run() in text.cpp.
    """
    from torchsmith.devices import write_device
    from torchsmith.project import find

    found = find(project, updatable=False)
    files = write_device(found, name, text)
    if as_json:
        print_json({"device": name, "files": files})
        return
    prefix = str(found.answers["backend_name"]).upper()
    tell(
        f"device/{name}: wrote {', '.join(file.removeprefix(f'device/{name}/') for file in files)}"
    )
    if text:
        tell("Replace the functions of runtime.cpp, then write compile() and run() of text.cpp:")
    else:
        tell("It works without changes. Test it, then replace its functions with your SDK's:")
    if (found.root / "device" / "tests" / "check.py").exists():
        print("  pip install -r device/tests/requirements.txt")
        print(f"  {prefix}_DEVICE={name} pytest device/tests/runtime")
        print(f"  torchsmith device check {name}")
    else:
        print(f"  pip install --no-build-isolation -C cmake.define.{prefix}_DEVICE={name} .")
    tell("docs/bring-up.md has the order.")


@app.command("check", cls=Command)
def check_device(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of the device's folder in device/, or a path.",
            show_default=False,
        ),
    ],
    python: BuildPython = None,
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """List what a device has, run a case of each kernel family, and name what to write next.

    Example: torchsmith device check acme

    It builds the device and runs about thirty of its tests, with device/tests/check.py of the
    project. The status is 1 if one fails. Needs the feature device_tests.
    """
    from torchsmith.doctor import default_python
    from torchsmith.project import find

    root = find(project, updatable=False).root
    script = root / "device" / "tests" / "check.py"
    if not script.exists():
        raise InputError(f"'{script}' is missing: torchsmith add device_tests")
    command = [python or default_python(), str(script), name, *(["--json"] if as_json else [])]
    raise typer.Exit(subprocess.run(command).returncode)
