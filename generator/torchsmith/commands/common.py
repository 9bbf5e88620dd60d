"""Shared code of the commands: reports and exit statuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from torchsmith.commands.checks import understood
from torchsmith.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

FOUND = 1
"""The status of a command that found a problem, a conflict or an unusable name."""
MISTAKE = 2
"""The status after wrong usage or a system error."""
DRIFTED = 3
"""The status of `doctor --drift` if the user changed template files."""
OUTDATED = 4
"""The status of `doctor --drift` if only the template has changed."""
INTERRUPTED = 130
"""The status after Ctrl-C, as shells have it: 128 and the number of the signal."""

Json = Annotated[bool, typer.Option("--json", help="Report as JSON.")]
ProjectFolder = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="FOLDER",
        help="The project's folder; by default the one that the current folder is in.",
        show_default=False,
    ),
]
BuildPython = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PROGRAM",
        help="The Python to build with; by default the active environment's.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", "-d", metavar="KEY=VALUE", help="An answer; may be repeated."),
]


class Command(TyperCommand):
    """A command whose usage line names its arguments in words: NAME..., [FOLDER]."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line."""
        pieces = [self.options_metavar or ""]
        for argument in self.get_params(ctx):
            if argument.param_type_name == "argument":
                word = (argument.metavar or argument.name or "").upper().rstrip(".")
                word += "..." if argument.nargs != 1 else ""
                pieces.append(word if argument.required else f"[{word}]")
        return pieces


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints brackets literally, not as styles."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False)


def print_json(data: Any) -> None:
    """Print a report for programs."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a report for people."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        # Long text wraps to the next line, so that no text is lost in a narrow terminal.
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def say(text: str) -> None:
    """Print a message that is not part of the report to stderr.

    On a terminal, prose wraps at words. Indented lines are commands and do not wrap.
    """
    out = console(stderr=True)
    for line in text.split("\n"):
        if out.is_terminal and not line.startswith("  "):
            out.print(line)
        else:
            print(line, file=sys.stderr)


@contextmanager
def working(step: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that a step is running; the yielded function shows its progress."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda progress: None
        return
    with out.status(f"{step} …") as status:
        yield lambda progress: status.update(f"{step} … {progress}")


def parse(data: list[str] | None) -> dict[str, Any]:
    """Return the answers given with `--data`.

    Raises:
        InputError: An item is not an answer, or has the wrong type.
    """
    answers = {}
    for item in data or []:
        key, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"'{item}' is not an answer, which is written key=value")
        if key.startswith("_"):
            raise InputError(f"'{key}' is a setting of copier, not a question")
        answers[key.strip()] = value
    return understood(answers)
