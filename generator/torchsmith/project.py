"""A rendered project: its answers, its template, and the parts that own its files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from torchsmith import catalog, git
from torchsmith.configuration import SafeLoader
from torchsmith.errors import InputError, require_choice
from torchsmith.files import recover
from torchsmith.shell import quoted

ANSWERS = ".copier-answers.yml"
MANIFEST = ".torchsmith.yml"

KINDS = (
    ("backend_name", str, "a name"),
    ("preset", str, "a word"),
    ("features", list, "a list"),
)
"""Answers that torchsmith reads, with their types."""


@dataclass(frozen=True)
class Part:
    """The core, the CI files, or one feature, as the manifest lists it."""

    requires: tuple[str, ...]
    paths: tuple[PurePosixPath, ...]

    def owns(self, path: PurePosixPath) -> bool:
        """Whether this part owns ``path``, which is relative to the project."""
        return any(catalog.covers(owned, path) for owned in self.paths)


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
            raise InputError(
                f"{MANIFEST} in '{self.root}' was edited: restore it with git"
            ) from error

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        if not (self.root / MANIFEST).exists():
            raise InputError(f"{MANIFEST} is missing in '{self.root}': restore it with git")
        return _read_mapping(self.root, MANIFEST)

    @cached_property
    def moved(self) -> dict[str, str]:
        """The files that the template has moved, in any of its versions, with their new paths."""
        moved = self._manifest.get("moved") or {}
        if not isinstance(moved, dict) or not all(isinstance(new, str) for new in moved.values()):
            raise InputError(f"{MANIFEST} in '{self.root}' was edited: restore it with git")
        return moved

    @property
    def features(self) -> list[str]:
        """The features that are on."""
        return [id for id in self.parts if id not in ("ci", "core")]

    @property
    def go_to(self) -> str:
        """A `cd` to the project for printed commands; empty if the current folder is in it."""
        here = Path.cwd()
        there = here == self.root or self.root in here.parents
        return "" if there else f"cd {quoted(str(self.root))} && "

    def owner(self, path: PurePosixPath) -> str:
        """Return the part that owns ``path``."""
        return catalog.owner(path, self._places) or "core"

    @cached_property
    def _places(self) -> dict[str, tuple[PurePosixPath, ...]]:
        return {id: part.paths for id, part in self.parts.items()}

    def reason(self, feature: str) -> str:
        """Return why a feature is on."""
        if feature in self.answers.get("features", ()):
            return "chosen"
        users = [id for id in self.features if feature in self.parts[id].requires]
        return f"required by {', '.join(users)}"

    def keeping_features(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``answers`` of an update with the features that own this project's files.

        A newer template may have changed the preset, or split features off the core or off other
        features. The project keeps its features, and adds those that were split off.
        """
        package = f"torch_{self.answers['backend_name']}"
        listed = self.root / "python" / package / "_features.py"
        if not listed.is_file():
            return dict(answers)  # another template, or the user deleted it
        known = set(re.findall(r'^    "(\w+)": Feature\(', listed.read_text("utf-8"), re.MULTILINE))
        split = {
            id
            for id, feature in catalog.features().items()
            if id not in known and feature.split_from in ("core", *self.features)
        }
        as_it_is = not split and self.answers.get("preset") == "custom"
        if as_it_is or answers.get("preset", "custom") != "custom":
            return dict(answers)
        chosen = set(answers.get("features", self._chosen))
        return {**answers, **_choosing(chosen | split)}

    def adding(self, features: Sequence[str]) -> dict[str, Any]:
        """Return the answers that add ``features``; an empty dict if all are on.

        Raises:
            InputError: There is no such feature.
        """
        for feature in features:
            require_choice("feature", feature, self._known, f"choose from {', '.join(self._known)}")
        if set(features) <= set(self.features):
            return {}
        return _choosing({*self._chosen, *features})

    def with_dependents(self, features: Sequence[str]) -> list[str]:
        """Return ``features`` with those that are on and require one of them, directly or not."""
        users = [id for id in self.features if {*self.parts[id].requires} & {*features}]
        grown = [*dict.fromkeys([*features, *users])]
        return grown if len(grown) == len(features) else self.with_dependents(grown)

    def removing(self, features: Sequence[str]) -> dict[str, Any]:
        """Return the answers that remove ``features``; an empty dict if all are off.

        Raises:
            InputError: There is no such feature, or one that stays requires it.
        """
        for feature in features:
            if feature == self.answers.get("device"):
                raise InputError(
                    f"'{feature}' cannot be removed while it is the default device: "
                    f"{self.go_to}torchsmith update --to current -d device=starter"
                )
            offer = f"this project has {', '.join(self.features) or 'none'}"
            require_choice("feature", feature, self._known, offer)
            users = [
                id
                for id in self.features
                if feature in self.parts[id].requires and id not in features
            ]
            if feature in self.features and users:
                raise InputError(
                    f"'{feature}' cannot be removed, as {' and '.join(users)} requires it: "
                    f"{self.go_to}torchsmith remove {' '.join([feature, *users])}"
                )
        if not set(features) & set(self.features):
            return {}
        return _choosing(self._chosen - set(features))

    @property
    def _known(self) -> list[str]:
        return list(dict.fromkeys([*catalog.features(), *self.features]))

    @property
    def _chosen(self) -> set[str]:
        """The features that the user chose; with a preset, all that are on."""
        custom = self.answers.get("preset") == "custom"
        return set(self.answers.get("features", ()) if custom else self.features)

    def require_answers_as_rendered(self) -> None:
        """Refuse answers that were edited by hand: the files are renders of the old answers.

        Raises:
            InputError: An answer differs from the one in the manifest.
        """
        rendered = self._manifest.get("answers")
        if not isinstance(rendered, dict):
            return  # rendered by a version that did not record them
        for question in {**rendered, **self.answers}:
            was, is_now = rendered.get(question), self.answers.get(question)
            if was == is_now:
                continue
            then = ""
            if is_now is not None and (was is not None or question in catalog.questions()):
                wish = quoted(f"{question}={plain(is_now)}")
                then = f", then {self.go_to}torchsmith update --to current -d {wish}"
            raise InputError(
                f"{ANSWERS} was edited by hand: {question} is {plain(is_now)} there, but the "
                f"project was rendered with{'out it' if was is None else f' {plain(was)}'}: "
                f"restore it with git{then}"
            )

    def require_committed_answers(self) -> None:
        """Refuse a project whose last update is not committed: HEAD has the files before it.

        Raises:
            InputError: The answers or the manifest differ from HEAD, or are not in it.
        """
        try:
            git.git(self.root, "rev-parse", "--verify", "--quiet", f"HEAD:./{ANSWERS}")
        except git.GitError as error:
            ignored = git.git(self.root, "check-ignore", "--", ANSWERS, worst=1)
            own = "git init && " if ignored else ""
            raise InputError(
                f"the last commit lacks '{self.root / ANSWERS}'{ignored and ', as git ignores it'}"
                f": {self.go_to}{own}git add -A . && git commit -m 'Start'"
            ) from error
        for name in (ANSWERS, MANIFEST):
            changed = git.git(self.root, "status", "--porcelain", "--", name)
            if changed:
                raise InputError(
                    f"'{self.root}' has an update that is not committed ({name}): commit it, or "
                    f"undo it with {self.go_to}git reset --hard"
                )

    def require_repository(self) -> None:
        """Refuse a project that is not under git.

        Raises:
            InputError: The project is not under git.
        """
        if git.root_of(self.root) is None:
            raise InputError(
                f"'{self.root}' is not a git repository, which updates need: "
                f"{self.go_to}git init && "
                "git add -A && git commit -m 'Start'"
            )

    def require_clean(self) -> None:
        """Refuse a project with uncommitted work, which a merge would mix with its changes.

        Raises:
            InputError: The project is not under git, or has changes that are not committed.
        """
        self.require_repository()
        if dirty := git.changes(self.root):
            shown = ", ".join(line[3:] for line in dirty[:3]) + (", …" if dirty[3:] else "")
            raise InputError(f"'{self.root}' has uncommitted changes ({shown}): commit them first")
        if marked := git.overlooked(self.root):
            raise InputError(
                f"git overlooks changes of '{marked[0]}', which could be lost: {self.go_to}git "
                f"update-index --no-skip-worktree --no-assume-unchanged -- {quoted(marked[0])}"
            )


def _choosing(features: set[str]) -> dict[str, Any]:
    return {"preset": "custom", "features": sorted(features)}


def plain(answer: Any) -> str:
    """Return an answer as a command line has it."""
    if isinstance(answer, list):
        return f"[{', '.join(map(str, answer))}]"
    return "missing" if answer is None else str(answer)


def current() -> Path | None:
    """Return the folder of the project that the current folder is in, or None."""
    return _around(Path(os.path.realpath(Path.cwd())))


def find(folder: Path | None = None, *, updatable: bool = True) -> Project:
    """Return the project in ``folder``, by default the one that the current folder is in.

    Raises:
        InputError: There is none, its answers are invalid, or it is not ``updatable``.
    """
    root = current() if folder is None else Path(os.path.realpath(folder))
    if root is None:
        raise InputError(
            f"'.' is not in a rendered project, as no folder above it has {ANSWERS}: go to one, or "
            "name it with --project"
        )
    if not (root / ANSWERS).is_file():
        around = _around(root)
        fix = f"name '{around}', which it is in" if around else "name the folder of one"
        reason = f"has no {ANSWERS}" if root.is_dir() else "is no folder"
        raise InputError(f"'{folder}' is not a rendered project, as it {reason}: {fix}")
    recover(root)  # first: an interrupted update may have written new answers
    return _load(root, updatable)


def _around(folder: Path) -> Path | None:
    """Return the project that a folder is in, or None."""
    folders = (folder, *folder.parents)
    return next((each for each in folders if (each / ANSWERS).is_file()), None)


def _read_mapping(root: Path, name: str) -> dict[str, Any]:
    """Return the mapping in a YAML file of a project.

    Raises:
        InputError: The file is invalid.
    """
    try:
        found = yaml.load((root / name).read_text("utf-8"), SafeLoader)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} in '{root}' is not UTF-8: restore it with git") from error
    except yaml.YAMLError as error:
        raise InputError(f"{name} in '{root}' is not YAML: restore it with git") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise InputError(f"{name} in '{root}' has no lines like 'key: value': restore it with git")
    return found


def _load(root: Path, updatable: bool) -> Project:
    answers = _read_mapping(root, ANSWERS)
    if updatable and not (answers.get("_commit") and answers.get("_src_path")):
        raise InputError(
            f"{ANSWERS} in '{root}' names no version of the template: "
            "only what was rendered from a git repository can be updated"
        )
    for question, kind, words in KINDS:
        default: Any = None if question == "backend_name" else kind()
        answer = answers.get(question, default)
        words_alone = kind is not list or all(isinstance(each, str) for each in answer or ())
        if not isinstance(answer, kind) or not words_alone:
            raise InputError(
                f"{ANSWERS} in '{root}' has no {question} that is {words}: restore it with git"
            )
    given = {key: value for key, value in answers.items() if not key.startswith("_")}
    source, version = (str(answers.get(key, "")) for key in ("_src_path", "_commit"))
    if source.startswith("-"):
        raise InputError(f"{ANSWERS} in '{root}' has _src_path {source}, which git would take for "
                         "an option: restore it with git")  # fmt: skip
    if "\0" in source + version:
        raise InputError(f"{ANSWERS} in '{root}' has a character of code 0 in _src_path or "
                         "_commit: restore it with git")  # fmt: skip
    return Project(root, given, source, version)
