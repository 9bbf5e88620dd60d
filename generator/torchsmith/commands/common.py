"""Shared code of the commands: reports and exit statuses."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

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


class Commands(TyperGroup):
    """Lists the commands, each with its whole sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, self.commands[name].get_short_help_str(limit=200))
                    for name in self.list_commands(ctx)
                ]
            )


class Command(TyperCommand):
    """A command whose usage line names its arguments in words: NAME..., [FOLDER]."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; all errors name the command.

        Raises:
            InputError: A value is empty, which a path would take for the current folder.
        """
        for before, word in zip([ctx.info_name, *args], args, strict=False):
            if not word or re.fullmatch("--[a-z-]+=", word):
                place = word.rstrip("=") or before
                raise InputError(f"the value after '{place}' is empty: write one, or leave it out")
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # click leaves it out of some
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

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
    print(json.dumps(data, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a report for people: a table or, where it would break words, a list."""
    from rich import box
    from rich.table import Table

    out, lines = console(), [columns, *rows]
    cells = [*zip(*lines, strict=True)]
    least = [max((len(word) for cell in column for word in cell.split()), default=0)
             for column in cells]  # fmt: skip
    spare = out.width - sum(least) - (3 * len(columns) + 1)
    if spare < 0:
        for row in lines[1:]:
            _print_row(columns, row)
        return
    wishes = [max(map(len, column)) - width for column, width in zip(cells, least, strict=True)]
    for done, place in enumerate(sorted(range(len(columns)), key=wishes.__getitem__)):
        more = min(wishes[place], spare // (len(columns) - done))
        least[place] += more
        spare -= more
    table = Table(box=box.SIMPLE_HEAD)
    for column, width in zip(columns, least, strict=True):
        table.add_column(column, overflow="fold", width=width)
    for row in lines[1:]:
        table.add_row(*row)
    out.print(table)


def _print_row(columns: Sequence[str], row: Sequence[str]) -> None:
    """Print a row of a table as a list; a column without a name is a mark of the row."""
    start = "".join(f"{cell} " for column, cell in zip(columns, row, strict=True) if not column)
    for column, cell in zip(columns, row, strict=True):
        if column and cell:
            tell(f"{start}{column}: {cell}")
            start = "  "
    tell("")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tell(text: str, style: str = "", *, stderr: bool = False) -> None:
    """Print prose, which wraps on a terminal, but never within a word."""
    out = console(stderr=stderr)
    for line in text.split("\n"):
        if out.is_terminal:
            out.print(_wrapped(line, out.width), style=style or None, soft_wrap=True)
        else:
            print(line, file=sys.stderr if stderr else sys.stdout)


def _wrapped(line: str, width: int) -> str:
    """Return a line in lines that fit; a word that is longer, such as a path, stays whole."""
    indent = " " * (len(line) - len(line.lstrip(" ")))
    return textwrap.fill(
        line,
        max(width, len(indent) + 8),
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str) -> None:
    """Print a message that is not part of the report to stderr.

    On a terminal, prose wraps at words. Indented lines are commands and do not wrap.
    """
    for line in text.split("\n"):
        if line.startswith("  "):
            print(line, file=sys.stderr)
        else:
            tell(line, stderr=True)


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
