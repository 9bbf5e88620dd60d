"""What commands check before they begin, so that a mistake costs no work and leaves no file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchsmith.errors import InputError

if TYPE_CHECKING:
    from torchsmith.project import Project


def require_lists(answers: Mapping[str, Any]) -> None:
    """Refuse lists that are no YAML, of which copier would quote the parser.

    Raises:
        InputError: One of them is none.
    """
    import yaml

    from torchsmith import tables

    for key in ("dtypes", "features"):
        try:
            yaml.safe_load(str(answers.get(key, "")))
        except yaml.YAMLError as error:
            choices = tables.load("dtypes")["dtype_catalog"]["default"]
            first = next(iter(tables.features() if key == "features" else choices))
            raise InputError(
                f"{key} is a list, for instance {key}=[{first}], not '{answers[key]}'"
            ) from error


def project_at(folder: Path, *, updatable: bool = True) -> Project:
    """Return the project that ``folder`` is in.

    Raises:
        InputError: There is none, its answers are broken, or it is to be ``updatable`` and is not.
    """
    from torchsmith.project import ANSWERS, find

    try:
        project = find(folder, updatable=updatable)
    except UnicodeDecodeError as error:
        raise InputError(f"{ANSWERS} of '{folder}' is not UTF-8: restore it with git") from error
    for question, kind, words in (
        ("backend_name", str, "a name"),
        ("preset", str, "a word"),
        ("features", list, "a list"),
    ):
        needed = question == "backend_name"
        if not isinstance(project.answers.get(question, None if needed else kind()), kind):
            raise InputError(
                f"{ANSWERS} in '{project.root}' has no {question} that is {words}: "
                "restore it with git"
            )
    return project


def require_template() -> None:
    """Refuse to go on where there is nothing to render.

    Raises:
        InputError: The command was installed without its template.
    """
    from torchsmith.template import TEMPLATE

    if not (TEMPLATE / "copier.yml").exists():
        raise InputError("there is no template beside this command: install torchsmith again")


def require_writable(folder: Path) -> None:
    """Refuse a folder in which nothing can be written, before there is something to write.

    Raises:
        InputError: The system does not let us.
    """
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InputError(
            f"nothing can be written in '{folder}' ({reason}): name another place"
        ) from error


def require_output(file: Path | None) -> None:
    """Refuse a report that could not be written once the work is done.

    Raises:
        InputError: It is a folder, or its folder is missing or cannot be written in.
    """
    if file is None:
        return
    if file.is_dir():
        raise InputError(f"'{file}' is a folder: name a file")
    if not file.parent.is_dir():
        raise InputError(f"'{file.parent}' is no folder: make it first, or name another file")
    require_writable(file.parent)
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"'{file}' cannot be written to: name another file")
