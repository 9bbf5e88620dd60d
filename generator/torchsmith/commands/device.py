"""`torchsmith device`: devices of a project's own."""

from __future__ import annotations

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
    text: Annotated[
        str,
        typer.Option(
            "--text",
            metavar="DIALECT",
            help="Compile kernels as text, in this language: opencl or glsl.",
            show_default=False,
        ),
    ] = "",
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Write the folder of a device: the project's starter device under another name.

    Example: torchsmith device new acme

    It works as it is. Each function says what to do on a chip in its place. With --text the
    kernels are those of device/shared/text, and run when compile() and run() of text.cpp are
    written.
    """
    from torchsmith.devices import write_device
    from torchsmith.project import find

    found = find(project, updatable=False)
    files = write_device(found, name, text)
    if as_json:
        print_json({"device": name, "files": files})
        return
    prefix = str(found.answers["backend_name"]).upper()
    print(
        f"device/{name}: wrote {', '.join(file.removeprefix(f'device/{name}/') for file in files)}"
    )
    if text:
        print("Write compile() and run() of text.cpp, then replace the functions of runtime.cpp:")
    else:
        print("It works without changes. Test it, then replace its functions with your SDK's:")
    if (found.root / "device" / "tests" / "check.py").exists():
        print("  pip install -r device/tests/requirements.txt")
        print(f"  {prefix}_DEVICE={name} pytest device/tests/runtime")
        print(f"  python device/tests/check.py {name}")
    else:
        print(f"  pip install --no-build-isolation -C cmake.define.{prefix}_DEVICE={name} .")
    print("docs/bring-up.md has the order.")
