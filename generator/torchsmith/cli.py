"""The command line `torchsmith`: its commands, and how errors are reported."""

from __future__ import annotations

import io
import os
import shutil
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from torchsmith import __version__
from torchsmith.commands import device, doctor, new, op, show, update
from torchsmith.commands.common import INTERRUPTED, MISTAKE, Command, Commands, say
from torchsmith.errors import InputError, did_you_mean, refusal, undecodable

OF_A_REPOSITORY = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""Variables that git sets for its hooks. They name one repository; a command works with several."""


# Plain markup: rich would parse the brackets of features=[amp] as a style.
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The base class of Typer's errors for wrong command lines. Depending on its version it is from the
# click that Typer bundles or from the installed one, and Typer exports only derived classes.
USAGE_ERRORS: tuple[type[Exception], ...] = tuple(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"torchsmith {__version__}")
        raise typer.Exit


@app.callback()
def torchsmith(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Render, build and update a PyTorch backend for your hardware."""


# In the order in which --help lists them.
app.command(cls=Command)(new.new)
app.command(cls=Command)(show.features)
app.command(cls=Command)(show.dtypes)
app.command(cls=Command)(show.names)
app.command(cls=Command)(update.add)
app.command(cls=Command)(update.remove)
app.command(cls=Command)(update.update)
app.command(cls=Command)(update.preview)
app.command(cls=Command)(update.diff)
app.command(cls=Command)(doctor.doctor)
app.add_typer(device.app, name="device")
app.add_typer(op.app, name="op")


def main() -> int:
    """Run the command and return its exit status; errors that are not bugs print one line."""
    for variable in OF_A_REPOSITORY:
        os.environ.pop(variable, None)
    # Git must fail instead of waiting for a password.
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the shell, as with <&-
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        # By itself, the help is at least 50 columns wide, which a narrow terminal breaks in words.
        width = min(shutil.get_terminal_size().columns, 80) - 2
        status: int = app(prog_name="torchsmith", standalone_mode=False, terminal_width=width) or 0
    except InputError as error:
        return _mistake(str(error))
    except USAGE_ERRORS as error:
        return _usage(error)
    except UnicodeDecodeError as error:
        return _mistake(undecodable(error))
    except OSError as error:
        return _mistake(refusal(error))
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    return _mistake("interrupted", INTERRUPTED) if status == INTERRUPTED else status


def _discard_unwritten() -> None:
    """Discard output that cannot be written; Python would fail on it again at exit."""
    for stream, first in ((sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__)):
        try:
            stream.flush()
        except OSError:
            if first and stream is first:
                os.dup2(os.open(os.devnull, os.O_WRONLY), first.fileno())


def _end(text: str, status: int = MISTAKE) -> int:
    with suppress(OSError):  # nobody reads it
        say(text)
    _discard_unwritten()
    return status


def _mistake(sentence: str, status: int = MISTAKE) -> int:
    return _end(f"torchsmith: {sentence}", status)


def _usage(error: Any) -> int:
    """Report a wrong command line; without a command, show the help."""
    text = error.format_message()
    context = getattr(error, "ctx", None)
    if context and text == context.get_help():
        return _end(text)
    if getattr(error, "possibilities", None):
        text = f"{error.message}{did_you_mean(error.option_name, error.possibilities)}"
    path = context.command_path if context else "torchsmith"
    return _mistake(f"{text[0].lower()}{text[1:].rstrip('.')} (see {path} --help)")


if __name__ == "__main__":
    sys.exit(main())
