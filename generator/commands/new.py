"""`torchsmith new`: renders a backend."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from generator.commands.common import parse


def new(
    destination: Annotated[
        Path, typer.Argument(help="Folder to write: new, or empty.", show_default=False)
    ],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", metavar="KEY=VALUE", help="An answer; may be repeated."),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="YAML file of answers; --data goes before it.")
    ] = None,
    defaults: Annotated[
        bool, typer.Option("--defaults", help="Ask nothing: what has no answer takes its default.")
    ] = False,
    ref: Annotated[str, typer.Option(help="Version of the template: tag or commit.")] = "HEAD",
) -> None:
    """Render a backend.

    Example: torchsmith new torch-foo --defaults -d backend_name=foo -d 'features=[amp]'
    """
    # Copier takes a third of a second to import, which --help need not wait for.
    from generator.render import read_answers, render

    given = read_answers(answers) if answers else {}
    given.update(parse(data))
    render(destination, given, ref=ref, ask=not defaults and sys.stdin.isatty(), quiet=False)
