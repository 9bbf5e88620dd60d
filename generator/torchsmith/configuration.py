"""A template's copier.yml, read as copier reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.version import Version

from torchsmith.errors import InputError

FOLLOWED = "9.19"
"""The version of copier whose renders this module reproduces."""

DEFAULTS: dict[str, Any] = {
    "_answers_file": ".copier-answers.yml",
    "_envops": {},
    "_exclude": [],
    "_min_copier_version": FOLLOWED,
    "_secret_questions": [],
    "_subdirectory": "",
    "_templates_suffix": ".jinja",
}
"""The settings that a render reads, with their defaults."""

UNUSED = {
    "_message_after_copy",
    "_message_after_update",
    "_message_before_copy",
    "_message_before_update",
    "_skip_if_exists",
}
"""The settings that have no effect in an empty folder."""

EXCLUDED = [
    "copier.yaml",
    "copier.yml",
    "~*",
    "*.py[co]",
    "__pycache__",
    ".git",
    ".DS_Store",
    ".svn",
]
"""The default of `_exclude` for a template without `_subdirectory`."""

if TYPE_CHECKING:
    SafeLoader = yaml.SafeLoader
else:
    SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast


class _Loader(SafeLoader):
    """Reads `!include` as copier does: the documents of the files that a pattern matches."""

    root: Path

    def include(self, node: yaml.ScalarNode) -> list[Any]:
        """Return the documents, in the order of the files' names."""
        pattern = str(self.construct_scalar(node))
        if pattern.startswith("/") or ".." in pattern:
            raise InputError(f"copier.yml of the template includes '{pattern}' from outside of it")
        files = sorted(self.root.glob(pattern))
        return [document for file in files for document in documents(file, self.root)]


_Loader.add_constructor("!include", _Loader.include)


def documents(file: Path, root: Path) -> list[Any]:
    """Return the documents of a YAML file of the template in ``root``, with lists flattened.

    Raises:
        InputError: The file is not YAML.
    """
    loader = _Loader(file.read_text("utf-8"))
    loader.root = root
    found = []
    try:
        while loader.check_data():  # type: ignore[no-untyped-call]
            found.append(loader.get_data())
    except yaml.YAMLError as error:
        raise InputError(f"'{file.relative_to(root)}' of the template is not YAML") from error
    finally:
        loader.dispose()
    return [*_flat(found)]


def _flat(found: list[Any]) -> Iterator[Any]:
    for each in found:
        if isinstance(each, list):
            yield from _flat(each)
        elif each is not None:
            yield each


def read(root: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the settings of the template in ``root``, and its questions by name, in order.

    Raises:
        InputError: copier.yml is missing or invalid, or has a setting that is not supported.
    """
    file = next(
        (root / name for name in ("copier.yml", "copier.yaml") if (root / name).is_file()), None
    )
    if file is None:
        raise InputError(
            f"the template has no copier.yml in '{root}': name another version with --to"
        )
    found: dict[str, Any] = {}
    for document in documents(file, root):
        for lists in ("_exclude", "_secret_questions"):  # of others, the last document counts
            if lists in document:
                document[lists] = [*found.get(lists, []), *document[lists]]
        found |= document
    settings = {key: value for key, value in found.items() if key.startswith("_")}
    if unknown := {key for key, value in settings.items() if value} - DEFAULTS.keys() - UNUSED:
        raise InputError(
            f"copier.yml of the template sets {min(unknown)}, which torchsmith does not support: "
            "render it with copier"
        )
    if not settings.get("_subdirectory"):
        settings.setdefault("_exclude", EXCLUDED)
    settings = DEFAULTS | settings
    least = str(settings["_min_copier_version"])
    if Version(least) > Version(f"{FOLLOWED}.999"):
        raise InputError(
            f"the template is for copier {least} or newer, and this torchsmith renders as copier "
            f"{FOLLOWED} does: update torchsmith"
        )
    questions = {
        name: dict(row) if isinstance(row, dict) else {"default": row}
        for name, row in found.items()
        if not name.startswith("_")
    }
    for name in settings["_secret_questions"]:
        questions[name]["secret"] = True
    return settings, questions
