"""`torchsmith device`: devices of a project's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchsmith.commands.common import Command, Json, ProjectFolder, print_json

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def device() -> None:
    """Begin a device of your own in a project.

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
    handles: Annotated[
        bool,
        typer.Option(
            "--handles", help="For an SDK that has handles of buffers instead of addresses."
        ),
    ] = False,
    project: ProjectFolder = Path(),
    as_json: Json = False,
) -> None:
    """Write the folder of a device: every function of runtime.h, to be filled in.

    Example: torchsmith device new acme

    It compiles, and each function says what to do and throws until it does.
    With --handles, addresses and what they lead to are written already.
    """
    from torchsmith.devices.starter import write_device
    from torchsmith.project import find

    found = find(project, updatable=False)
    files = write_device(found, name, handles)
    if as_json:
        print_json({"device": name, "files": files})
        return
    prefix = str(found.answers["backend_name"]).upper()
    print(
        f"device/{name}: wrote {', '.join(file.removeprefix(f'device/{name}/') for file in files)}"
    )
    print("Write the functions of runtime.cpp one by one, and run after each:")
    print(f"  {prefix}_DEVICE={name} pytest device/tests/runtime/test_devices.py -x")
    print("docs/bring-up.md says what comes next.")
