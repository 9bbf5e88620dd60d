"""Checks before a command starts, so that a mistake costs no work and leaves no file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchsmith.errors import InputError


def understood(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return answers with the types of their questions: `amp,rng` becomes a list for a list.

    The template validates the items of lists, and texts.

    Raises:
        InputError: An answer is not a list, or not text, although the question requires it.
    """
    from torchsmith import catalog

    lists = catalog.lists()
    return {
        key: _items(key, value, lists[key]) if key in lists else _text(key, value)
        for key, value in answers.items()
    }


def _items(key: str, value: Any, choices: Sequence[str]) -> list[str]:
    import yaml

    given = value
    if isinstance(value, str):
        try:
            given = yaml.safe_load(value)
        except yaml.YAMLError:
            given = None
    if isinstance(given, str):
        given = given.replace(",", " ").split()
    if not isinstance(given, list) or any(
        item is None or isinstance(item, list | dict) for item in given
    ):
        raise InputError(f"{key} is a list, for instance {key}={choices[0]}, not '{value}'")
    return [str(item) for item in given]


def _text(key: str, value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise InputError(f"{key} is text, not {value}: write it in quotes")
    return value


def require_template() -> None:
    """Check that there is a template to render.

    Raises:
        InputError: The command was installed without its template.
    """
    from torchsmith.template import TEMPLATE

    if not (TEMPLATE / "copier.yml").exists():
        raise InputError("there is no template beside this command: install torchsmith again")


def template_address(template: str) -> str:
    """Return the address of a template, as a project records it.

    Raises:
        InputError: There is no template, git is missing, or the path is not UTF-8.
    """
    if ":" in template:
        if shutil.which("git") is None:
            raise InputError(f"'{template}' is read with git, which is not installed: install it")
        return template
    folder = Path(template).expanduser()
    if folder.suffix not in (".git", ".bundle") and not (folder / "copier.yml").is_file():
        raise InputError(f"there is no template in '{template}': name a folder with copier.yml")
    # Absolute, as later updates may run in another folder.
    place = os.path.normpath(folder.absolute())
    try:
        place.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the path '{place}' is not UTF-8, in which a project records it: rename the folder"
        ) from error
    return place
