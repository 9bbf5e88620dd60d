"""Sets of features and of other answers, for tests with many combinations."""

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
    """Return whether every feature that an enabled feature requires is enabled or undecided."""
    on = frozenset(id for id in catalog.features() if part.get(id) is True)
    return not any(part.get(id) is False for id in catalog.closure(on))


@cache
def rows() -> list[dict[str, Any]]:
    """Return rows in which each pair of values of different axes occurs."""
    return covering_array(axes(), is_legal)


def features_of(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the features that a row has."""
    return frozenset(id for id in catalog.features() if row[id])


def answers(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as answers; those of a hostile row break code that does not quote."""
    return {
        **{name: HOSTILE[name] for name in NAMES if row["hostile"]},
        **{name: row[name] for name in ("license", "ci_provider")},
        "dtypes": list(row["dtypes"]),
        "features": sorted(features_of(row)),
    }


def covering_combinations() -> list[frozenset[str]]:
    """Return a few sets in which each feature is on and off, with and without each other feature.

    The sets are the empty one, the one with all features, and those of the rows.
    """
    sets = {frozenset[str](), frozenset(catalog.features()), *map(features_of, rows())}
    return sorted(sets, key=lambda on: (len(on), sorted(on)))
