"""Sets of features, for tests that go through them."""

from __future__ import annotations

from itertools import chain, combinations

from torchsmith import catalog


def valid_combinations() -> list[frozenset[str]]:
    """Return every set of features that is closed under `requires`, the empty one first."""
    ids = list(catalog.features())
    subsets = chain.from_iterable(combinations(ids, size) for size in range(len(ids) + 1))
    return [chosen for chosen in map(frozenset, subsets) if catalog.closure(chosen) == chosen]


def telling_combinations() -> list[frozenset[str]]:
    """Return sets in which each feature is on and off, with and without each other one.

    None, all, each alone with what it requires, and all but each with what requires it; few, where
    the valid ones double with every feature.
    """
    every = frozenset(catalog.features())
    alone = [catalog.closure(frozenset({id})) for id in every]
    without = [
        frozenset(on for on in every if id not in catalog.closure(frozenset({on}))) for id in every
    ]
    return sorted({frozenset(), every, *alone, *without}, key=lambda on: (len(on), sorted(on)))
