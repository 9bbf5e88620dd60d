"""The `torchsmith` command: which commands there are, and how a mistake is answered."""

from __future__ import annotations

import sys

import typer

from torchsmith.commands import catalog, doctor, merging, new, op, smoke
from torchsmith.commands.common import MISTAKE, say
from torchsmith.errors import InputError

# Plain markup: rich would take the brackets of features=[amp] for a style.
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def torchsmith() -> None:
    """A PyTorch backend for your hardware, rendered, built and kept up to date."""


# In the order in which --help lists them.
app.command()(new.new)
app.command()(catalog.features)
app.command()(catalog.dtypes)
app.command()(catalog.names)
app.command()(merging.add)
app.command()(merging.remove)
app.command()(merging.update)
app.command()(merging.preview)
app.command()(doctor.doctor)
app.add_typer(op.app, name="op")
app.command()(smoke.smoke)


def main() -> int:
    """Run the command; a mistake of the user's is one line on stderr and exit status 2."""
    try:
        app()
    except InputError as error:
        say(f"torchsmith: {error}")
        sys.exit(MISTAKE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
