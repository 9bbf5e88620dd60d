"""`torchsmith smoke`, for those who maintain a template: its harness is in the repository alone."""

from __future__ import annotations

from torchsmith.errors import InputError
from torchsmith.template import CHECKOUT


def unavailable() -> None:
    """Render, build and test combinations of answers, from the template's repository.

    Example: torchsmith smoke --strength each --until render
    """
    raise InputError(
        "smoke builds are for the template's repository: clone it, run `make venv` there, then "
        ".venv/bin/torchsmith smoke"
    )


if CHECKOUT is None:
    smoke = unavailable
else:
    from maintenance.smoke.command import smoke

__all__ = ["smoke"]
