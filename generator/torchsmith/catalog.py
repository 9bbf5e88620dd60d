"""Reads the catalog: the same tables and the same check of names that copier uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from torchsmith.configuration import SafeLoader, documents
from torchsmith.template import CATALOG, TEMPLATE

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Feature:
    """A feature of the catalog; its paths include those of every CI provider."""

    id: str
    group: str
    title: str
    help: str
    requires: tuple[str, ...]
    since: str
    split_from: str
    paths: tuple[str, ...]
    provides: tuple[str, ...]

    def places(self, package: str) -> tuple[PurePosixPath, ...]:
        """Return its paths, relative to the rendered project."""
        return _places(self.paths, package)

    def owns(self, path: PurePosixPath, package: str) -> bool:
        """Whether the feature owns ``path``, which is relative to the rendered project."""
        return any(covers(place, path) for place in self.places(package))


@cache
def _places(paths: tuple[str, ...], package: str) -> tuple[PurePosixPath, ...]:
    owned = (each.replace("{package}", package).lstrip("/") for each in paths)
    return tuple(map(PurePosixPath, owned))


@cache
def load(topic: str) -> dict[str, Any]:
    """Return one file of the catalog."""
    (content,) = documents(CATALOG / f"{topic}.yml", TEMPLATE)
    assert isinstance(content, dict)
    return content


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Return the features by id, in catalog order, as templates see them."""
    from torchsmith.jinja import own

    tables = {name: row["default"] for name, row in load("features").items()}
    text = own(CATALOG).from_string(tables["catalog"]).render(tables)
    found: dict[str, dict[str, Any]] = yaml.load(text, SafeLoader)
    return found


@cache
def features() -> dict[str, Feature]:
    """Return the features by id, in catalog order."""
    return {
        id: Feature(
            id=id,
            group=row["group"],
            title=row["title"],
            help=row["help"],
            requires=tuple(row["requires"]),
            since=row["since"],
            split_from=row["split_from"],
            paths=(*row["paths"], *chain.from_iterable(row["ci_paths"].values())),
            provides=tuple(row["provides"]),
        )
        for id, row in rows().items()
    }


def dtypes() -> dict[str, dict[str, Any]]:
    """Return the rows of dtypes.yml by the element type's name."""
    found: dict[str, dict[str, Any]] = load("dtypes")["dtype_catalog"]["default"]
    return found


def torch_window() -> dict[str, Any]:
    """Return the versions of PyTorch and Python that a rendered project supports."""
    window: dict[str, Any] = load("torch")["torch_window"]["default"]
    return window


def questions() -> tuple[str, ...]:
    """Return the names of the questions, in the order in which they are asked."""
    return tuple(load("questions")["known_answers"]["default"])


def choices(question: str) -> list[str]:
    """Return the choices of a question; an empty list if any text is valid."""
    if question == "features":
        return list(features())
    if question == "dtypes":
        return list(dtypes())
    return list(load("questions")[question].get("choices", {}).values())


def lists() -> dict[str, list[str]]:
    """Return the questions whose answer is a list, with their choices."""
    asked = load("questions")
    return {name: choices(name) for name in questions() if asked[name].get("multiselect")}


def closure(wanted: frozenset[str]) -> frozenset[str]:
    """Return ``wanted`` with all features that it requires."""
    grown = wanted.union(*(features()[id].requires for id in wanted))
    return wanted if grown == wanted else closure(grown)


def presets() -> dict[str, frozenset[str]]:
    """Return the features of every preset except `custom`."""
    named = load("features")["presets"]["default"]
    return {
        "full": frozenset(features()),
        **{id: closure(frozenset(on)) for id, on in named.items()},
    }


@cache
def places(package: str) -> dict[str, tuple[PurePosixPath, ...]]:
    """Return the paths of every feature, relative to a project with that package."""
    return {id: feature.places(package) for id, feature in features().items()}


def owner(path: PurePosixPath, parts: Mapping[str, Iterable[PurePosixPath]]) -> str | None:
    """Return the part whose place covers ``path`` most closely, or None."""
    owners = {place: id for id, places in parts.items() for place in places}
    return next((owners[place] for place in (path, *path.parents) if place in owners), None)


def groups() -> dict[str, list[str]]:
    """Return the features of each group, in catalog order."""
    found: dict[str, list[str]] = load("features")["feature_groups"]["default"]
    return found


def users(id: str) -> list[str]:
    """Return the features that directly require a feature, in catalog order."""
    return [other.id for other in features().values() if id in other.requires]


def sizes() -> dict[str, dict[str, dict[str, int]]]:
    """Return the files and lines of the parts and of the presets, as sizes.yml has them."""
    found: dict[str, dict[str, dict[str, int]]] = load("sizes")["sizes"]["default"]
    return found


def covers(owned: PurePosixPath, path: PurePosixPath) -> bool:
    """Whether an owned file or folder is ``path``, or a folder above it."""
    return path.parts[: len(owned.parts)] == owned.parts


def name_problem(name: str) -> str:
    """Return one sentence on why a backend cannot have a name, or ""."""
    return _name_check().render(name=name)


@cache
def _name_check() -> jinja2.Template:
    """Return the template's own check of names, which needs no render."""
    from torchsmith.jinja import own

    names = own(CATALOG)
    names.globals.update({name: table["default"] for name, table in load("reserved").items()})
    return names.from_string(
        "#% import 'names.jinja' as names\n{= names.name_problem(name) | trim =}"
    )
