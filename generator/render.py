"""Rendering: the only place that talks to copier."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import copier
import yaml
from copier.errors import CopierError, DirtyLocalWarning, UserMessageError

from generator.errors import InputError
from generator.speed import fresh_render

TEMPLATE = Path(__file__).parents[1]


def read_answers(file: Path) -> dict[str, Any]:
    """Return the answers in a YAML file, an answers file of copier's included."""
    try:
        answers = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{file} is not YAML") from error
    if not isinstance(answers, dict):
        raise InputError(f"{file} does not hold answers, which are lines like 'backend_name: foo'")
    return {str(key): value for key, value in answers.items() if not str(key).startswith("_")}


def render(
    destination: Path,
    answers: Mapping[str, Any],
    *,
    source: str = str(TEMPLATE),
    ref: str | None = "HEAD",
    ask: bool = False,
    quiet: bool = True,
) -> None:
    """Render the template into ``destination``.

    Args:
        destination: A folder that is empty or absent.
        answers: Answers by question; the others are asked or take their defaults.
        source: Path or URL of the template.
        ref: Its branch, tag or commit; None takes the latest tag.
        ask: Whether to ask the questions that have no answer.
        quiet: Whether to say nothing on the way.

    Raises:
        InputError: The answers or the destination are wrong; nothing was written.
    """
    if destination.exists() and not destination.is_dir():
        raise InputError(f"'{destination}' is a file: name a new folder")
    if destination.is_dir() and any(entry.name != ".git" for entry in destination.iterdir()):
        raise InputError(f"'{destination}' is not empty: name a new folder")
    try:
        with warnings.catch_warnings(), fresh_render():
            warnings.simplefilter("ignore", DirtyLocalWarning)
            copier.run_copy(
                source,
                destination,
                data=dict(answers),
                vcs_ref=ref,
                defaults=not ask,
                quiet=quiet,
                settings=copier.Settings(),
            )
    except UserMessageError as error:
        raise InputError(error.message) from error
    except (CopierError, ValueError, TypeError) as error:
        raise InputError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    """What an exception of copier's says to its user: our validators' words without its preface."""
    text = str(error)
    if text.startswith("Validation error for question"):
        text = text.partition("': ")[2]
    return " ".join(text.split())
