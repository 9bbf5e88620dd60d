"""Reduces a row that fails to the smallest set of features that fails at the same stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maintenance.smoke.answers import Row, Space, features_of
from torchsmith import catalog

# Each trial is a build, though mostly from the compiler's cache.
MOST_TRIALS = 64


def shrink(space: Space, row: Row, fails_alike: Callable[[Row], bool], passed: list[Row]) -> Row:
    """Return the simplest row found that still fails as ``row`` does.

    First everything but the features is set to its default, then features are removed: all, halves,
    quarters, at last one at a time.

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
    size = len(catalog.features())
    while size:
        ids = sorted(features_of(row))
        for start in range(0, len(ids), size):
            smaller = _without(features_of(row), ids[start : start + size])
            candidate = {**row, **{id: id in smaller for id in catalog.features()}}
            if candidate != row and still_fails_alike(candidate):
                row = candidate
        size //= 2
    return row


def _without(features: frozenset[str], removed: Sequence[str]) -> frozenset[str]:
    """Return ``features`` without ``removed`` and those that require one of them."""
    rest = features.difference(removed)
    return frozenset(id for id in rest if catalog.closure(frozenset({id})) <= rest)
