"""The `torchsmith` command: a thin layer over rendering that answers mistakes with one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

# Plain markup: rich would take the brackets of features=[amp] for a style.
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def torchsmith() -> None:
    """A PyTorch backend for your hardware, rendered, built and kept up to date."""


@app.command()
def new(
    destination: Annotated[Path, typer.Argument(help="Folder to write: new, or empty.")],
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
    given.update(_parse(data or []))
    render(destination, given, ref=ref, ask=not defaults and sys.stdin.isatty(), quiet=False)


def _parse(data: list[str]) -> dict[str, str]:
    from generator.render import InputError

    answers = {}
    for item in data:
        key, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"'{item}' is not an answer, which is written key=value")
        answers[key.strip()] = value
    return answers


def main() -> int:
    """Run the command; a mistake of the user's is one line on stderr and exit status 2."""
    try:
        app()
    except Exception as error:
        from generator.render import InputError

        if not isinstance(error, InputError):
            raise
        print(f"torchsmith: {error}", file=sys.stderr)
        sys.exit(2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
