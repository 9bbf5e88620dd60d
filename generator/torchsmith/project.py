"""A rendered project: what it was rendered from, and which part of the template wrote what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from torchsmith import git
from torchsmith.catalog import covers
from torchsmith.errors import InputError
from torchsmith.swap import recover

ANSWERS = ".copier-answers.yml"
MANIFEST = ".torchsmith.yml"

KINDS = (
    ("backend_name", str, "a name"),
    ("preset", str, "a word"),
    ("features", list, "a list"),
)
"""Answers that are relied upon, and what they are."""


@dataclass(frozen=True)
class Part:
    """The core, the CI files, or one feature, as the manifest lists it."""

    requires: tuple[str, ...]
    paths: tuple[PurePosixPath, ...]

    def owns(self, path: PurePosixPath) -> bool:
        """Whether ``path``, relative to the project, is this part's."""
        return any(covers(owned, path) for owned in self.paths)


@dataclass(frozen=True)
class Project:
    """A rendered project on disk.

    Attributes:
        root: Its folder.
        answers: The answers that it was rendered from, by question.
        source: Where its template is: a path or a URL.
        version: The version of the template that it has.
    """

    root: Path
    answers: dict[str, Any]
    source: str
    version: str

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The parts that it was rendered with: features first, then `ci` and `core`."""
        try:
            return {
                id: Part(tuple(row["requires"]), tuple(PurePosixPath(p) for p in row["paths"]))
                for id, row in self._manifest["parts"].items()
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{MANIFEST} in '{self.root}' was edited: restore it") from error

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        try:
            manifest = yaml.safe_load((self.root / MANIFEST).read_text("utf-8"))
        except FileNotFoundError as error:
            raise InputError(
                f"{MANIFEST} is missing in '{self.root}': restore it with git"
            ) from error
        except yaml.YAMLError as error:
            raise InputError(f"{MANIFEST} in '{self.root}' was edited: restore it") from error
        if not isinstance(manifest, dict):
            raise InputError(f"{MANIFEST} in '{self.root}' was edited: restore it")
        return manifest

    @cached_property
    def moved(self) -> dict[str, str]:
        """The files that the template has moved, in any of its versions, with their new paths."""
        return dict(self._manifest.get("moved") or {})

    @property
    def features(self) -> list[str]:
        """The features that are on."""
        return [id for id in self.parts if id not in ("ci", "core")]

    def owner(self, path: PurePosixPath) -> str:
        """Return the part that ``path`` comes from."""
        return next((id for id, part in self.parts.items() if part.owns(path)), "core")

    def reason(self, feature: str) -> str:
        """Say why a feature is on."""
        if self.answers.get("preset") != "custom":
            return f"preset {self.answers.get('preset')}"
        if feature in self.answers.get("features", ()):
            return "chosen"
        users = [id for id in self.features if feature in self.parts[id].requires]
        return f"required by {', '.join(users)}"

    def with_template(self, source: str) -> Project:
        """Return the same project with its template elsewhere."""
        return replace(self, source=source)

    def require_clean(self) -> None:
        """Refuse to go on where a merge could not be told from the user's own work.

        Raises:
            InputError: The project is not under git, or has uncommitted changes.
        """
        if git.root_of(self.root) is None:
            raise InputError(
                f"'{self.root}' is not under git, which updates need: "
                "git init && git add -A && git commit -m 'Start'"
            )
        if dirty := git.changes(self.root):
            shown = ", ".join(line[3:] for line in dirty[:3]) + (", …" if dirty[3:] else "")
            raise InputError(f"'{self.root}' has uncommitted changes ({shown}): commit them first")


def is_project(folder: Path) -> bool:
    """Whether ``folder`` is in a rendered project."""
    start = folder.resolve()
    return any((root / ANSWERS).is_file() for root in (start, *start.parents))


def find(folder: Path, *, updatable: bool = True) -> Project:
    """Return the project that ``folder`` is in.

    Raises:
        InputError: There is none, its answers are broken, or it is to be ``updatable`` and is not.
    """
    start = folder.resolve()
    for root in (start, *start.parents):
        if (root / ANSWERS).is_file():
            recover(root)  # first of all: an update that was cut off may have written new answers
            return _load(root, updatable)
    raise InputError(f"'{folder}' is not in a rendered project: no folder above it has {ANSWERS}")


def _load(root: Path, updatable: bool) -> Project:
    try:
        answers = yaml.safe_load((root / ANSWERS).read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{ANSWERS} in '{root}' is not UTF-8: restore it with git") from error
    except yaml.YAMLError as error:
        raise InputError(f"{ANSWERS} in '{root}' is not YAML: restore it with git") from error
    if not isinstance(answers, dict):
        raise InputError(f"{ANSWERS} in '{root}' holds no answers: restore it with git")
    if updatable and not {"_commit", "_src_path"} <= set(answers):
        raise InputError(
            f"{ANSWERS} in '{root}' names no version of the template: "
            "only what was rendered from a git repository can be updated"
        )
    for question, kind, words in KINDS:
        default: Any = None if question == "backend_name" else kind()
        if not isinstance(answers.get(question, default), kind):
            raise InputError(
                f"{ANSWERS} in '{root}' has no {question} that is {words}: restore it with git"
            )
    given = {key: value for key, value in answers.items() if not key.startswith("_")}
    source, version = (str(answers.get(key, "")) for key in ("_src_path", "_commit"))
    return Project(root, given, source, version)
