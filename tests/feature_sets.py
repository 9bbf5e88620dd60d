"""Sets of features, and of other answers, for tests that go through them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from covering import covering_array
from rendering import HOSTILE
from torchsmith import catalog

NAMES = ("backend_name", "display_name", "vendor", "description")


def axes() -> dict[str, tuple[Any, ...]]:
    """Return the values of each feature and of the other answers."""
    dtypes = catalog.dtypes()
    required = tuple(name for name, row in dtypes.items() if row.get("required"))
    default = tuple(name for name, row in dtypes.items() if row["default"])
    return {
        **dict.fromkeys(catalog.features(), (True, False)),
        "license": tuple(catalog.choices("license")),
        "ci_provider": tuple(catalog.choices("ci_provider")),
        "dtypes": (default, required, tuple(dtypes)),
        "hostile": (False, True),
    }


def is_legal(part: Mapping[str, Any]) -> bool:
    """Whether features that are on and off leave on what those that are on require."""
    on = frozenset(id for id in catalog.features() if part.get(id) is True)
    return not any(part.get(id) is False for id in catalog.closure(on))


@cache
def rows() -> list[dict[str, Any]]:
    """Return rows in which each two values of different axes occur together."""
    return covering_array(axes(), is_legal)


def features_of(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the features that a row has."""
    return frozenset(id for id in catalog.features() if row[id])


def answers(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as answers; those of a hostile one break what forgets to quote."""
    return {
        **{name: HOSTILE[name] for name in NAMES if row["hostile"]},
        **{name: row[name] for name in ("license", "ci_provider")},
        "dtypes": list(row["dtypes"]),
        "features": sorted(features_of(row)),
    }


def telling_combinations() -> list[frozenset[str]]:
    """Return sets in which each feature is on and off, with and without each other one.

    None, all, and those of the rows; few, where the valid sets double with every feature.
    """
    sets = {frozenset[str](), frozenset(catalog.features()), *map(features_of, rows())}
    return sorted(sets, key=lambda on: (len(on), sorted(on)))
