"""Rendering and updating: the only place that talks to copier."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import copier
import yaml
from copier.errors import CopierError, DirtyLocalWarning, UserMessageError
from plumbum import ProcessExecutionError

from torchsmith import tables
from torchsmith.errors import InputError, did_you_mean
from torchsmith.template import TEMPLATE

CURRENT = copier.VcsRef.CURRENT.value
"""The version of the template that a project has, as an update's ``ref``."""


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
    with _copier():
        copier.run_copy(
            source,
            destination,
            data=dict(answers),
            vcs_ref=ref,
            defaults=not ask,
            quiet=quiet,
            settings=copier.Settings(),
        )


def update(project: Path, answers: Mapping[str, Any], *, ref: str) -> None:
    """Merge another version of the template, or other answers, into a project.

    Args:
        project: Its folder, which is under git and has nothing uncommitted.
        answers: Answers that change; new questions take their defaults.
        ref: The version to come to: a tag, branch or commit, or CURRENT.

    Raises:
        InputError: The answers are wrong, or the version cannot be come to; nothing was written.
    """
    with _copier():
        copier.run_update(
            project,
            data=dict(answers),
            vcs_ref=copier.VcsRef.CURRENT if ref == CURRENT else ref,
            defaults=True,
            overwrite=True,
            quiet=True,
            settings=copier.Settings(),
        )


@contextmanager
def _copier() -> Iterator[None]:
    """Run copier; what it holds against the user becomes an InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DirtyLocalWarning)
            yield
    except UserMessageError as error:
        raise InputError(str(error)) from error
    except ProcessExecutionError as error:
        said = (error.stderr or "").strip().splitlines() or ["git failed"]
        raise InputError(
            f"the template cannot be had: {said[-1].removeprefix('fatal: ')}"
        ) from error
    except (CopierError, ValueError, TypeError) as error:
        raise InputError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    """What an exception of copier's says to its user: our validators' words without its preface."""
    text = str(error)
    if text.startswith("Validation error for question"):
        text = text.partition("': ")[2]
    text = " ".join(text.split())
    if wrong := re.match(r"there is no (question|feature|dtype) '([^']*)'", text):
        choices = {
            "question": tables.questions(),
            "feature": tables.features(),
            "dtype": tables.load("dtypes")["dtype_catalog"]["default"],
        }
        text += did_you_mean(wrong[2], choices[wrong[1]])
    return text
