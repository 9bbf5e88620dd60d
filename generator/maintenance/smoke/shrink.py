"""Reduces a row that fails to the smallest set of features that fails at the same stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from maintenance.smoke.answers import Row, Space, features_of
from torchsmith import catalog

# Each trial is a build, though mostly from the compiler's cache.
MOST_TRIALS = 32


def shrink(space: Space, row: Row, fails_alike: Callable[[Row], bool], passed: list[Row]) -> Row:
    """Return the simplest row found that still fails as ``row`` does.

    First everything but the features is set to its default, then features are removed.

    Args:
        space: what the row is from.
        row: a row that fails.
        fails_alike: tries a row; one that fails at another stage has another fault.
        passed: rows that are known to pass, and need no trial.
    """
    trials = 0

    def still_fails_alike(candidate: Row) -> bool:
        nonlocal trials
        if candidate in passed or trials == MOST_TRIALS:
            return False
        trials += 1
        return fails_alike(candidate)

    row = {**row, "preset": "custom", **{id: id in features_of(row) for id in catalog.features()}}
    for name in ("identity", "dtypes", "license", "ci_provider"):
        simpler = {**row, name: space.axes[name][0]}
        if simpler != row and still_fails_alike(simpler):
            row = simpler
    for smaller in _subsets(features_of(row)):
        candidate = {**row, **{id: id in smaller for id in catalog.features()}}
        if still_fails_alike(candidate):
            return candidate
    return row


def _subsets(features: frozenset[str]) -> Iterator[frozenset[str]]:
    """The smaller sets that are closed under `requires`: none, the small ones, then all but one."""
    sizes = [0, 1, 2, *range(len(features) - 1, 2, -1)]
    for size in dict.fromkeys(size for size in sizes if size < len(features)):
        for chosen in combinations(sorted(features), size):
            if catalog.closure(frozenset(chosen)) == frozenset(chosen):
                yield frozenset(chosen)
