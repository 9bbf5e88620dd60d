"""`torchsmith smoke`, for those who maintain a template: its harness is in the repository alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from torchsmith.errors import InputError
from torchsmith.template import CHECKOUT


def unavailable(
    arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Render, build and test combinations of answers, from the template's repository.

    Example: torchsmith smoke --strength each --until render
    """
    raise InputError(
        "smoke builds are for the template's repository: clone it, run `make venv` there, then "
        ".venv/bin/torchsmith smoke"
    )


smoke: Callable[..., None] = unavailable
if CHECKOUT is not None:
    from maintenance.smoke import command

    smoke = command.smoke

# In a wheel the sentence is the answer to any options.
SETTINGS = {"ignore_unknown_options": CHECKOUT is None}

__all__ = ["SETTINGS", "smoke"]
