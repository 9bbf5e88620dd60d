"""Sets of features, for tests that go through them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from maintenance.smoke.covering import covering_array
from torchsmith import catalog


@cache
def telling_combinations() -> tuple[frozenset[str], ...]:
    """Return sets in which each feature is on and off, with and without each other one.

    None, all, and a pairwise array; few, where the valid sets double with every feature.
    """
    features = catalog.features()
    rows = covering_array(dict.fromkeys(features, (True, False)), 2, _is_legal)
    chosen = {frozenset(id for id in features if row[id]) for row in rows}
    return tuple(
        sorted({frozenset(), frozenset(features), *chosen}, key=lambda on: (len(on), sorted(on)))
    )


def _is_legal(part: Mapping[str, bool]) -> bool:
    """Whether features that are on and off leave on what those that are on require."""
    on = frozenset(id for id, value in part.items() if value)
    return not any(part.get(id) is False for id in catalog.closure(on))
