"""`torchsmith smoke`, for those who maintain a template: its harness is in the repository alone."""

from __future__ import annotations

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


SETTINGS: dict[str, bool] = {}
if CHECKOUT is None:
    smoke = unavailable
    SETTINGS["ignore_unknown_options"] = True  # the sentence is the answer to each of them
else:
    from maintenance.smoke.command import smoke

__all__ = ["SETTINGS", "smoke"]
