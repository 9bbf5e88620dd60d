"""Covering arrays: few rows that contain every legal combination of n values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from random import Random
from typing import Any

Axes = Mapping[str, tuple[Any, ...]]
Legal = Callable[[Mapping[str, Any]], bool]
Interaction = tuple[tuple[str, Any], ...]
"""Values for some axes, in the order of the axes."""

TRIES = 100
"""Number of greedy searches in different orders; one takes milliseconds, a row takes a build."""


def interactions(axes: Axes, strength: int, legal: Legal) -> Iterator[Interaction]:
    """Yield every legal combination of values of ``strength`` axes."""
    for names in combinations(axes, min(strength, len(axes))):
        for values in product(*(axes[name] for name in names)):
            found = tuple(zip(names, values, strict=True))
            if legal(dict(found)):
                yield found


def covering_array(axes: Axes, strength: int, legal: Legal) -> list[dict[str, Any]]:
    """Return rows that contain every legal interaction: the smallest result of several tries.

    Equal arguments give equal rows on every machine, so that shards fit together. Every one
    that is ``legal`` must be completable one value at a time.
    """
    wanted = list(interactions(axes, strength, legal))
    tries = (_greedy(axes, strength, legal, wanted, Random(seed)) for seed in range(TRIES))
    return min(tries, key=len)


def _greedy(
    axes: Axes, strength: int, legal: Legal, wanted: list[Interaction], order: Random
) -> list[dict[str, Any]]:
    """Start each row from one not covered yet, then choose the value with the largest gain."""
    missing = dict.fromkeys(order.sample(wanted, len(wanted)))
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for name in order.sample(list(axes), len(axes)):
            if name not in row:
                row[name] = max(
                    (
                        value
                        for value in order.sample(axes[name], len(axes[name]))
                        if legal({**row, name: value})
                    ),
                    key=lambda value, name=name, row=row: _gain(  # type: ignore[misc]
                        {**row, name: value}, name, missing
                    ),
                )
        rows.append({name: row[name] for name in axes})
        for found in interactions_in(rows[-1], strength):
            missing.pop(found, None)
    return rows


def interactions_in(row: Mapping[str, Any], strength: int) -> Iterator[Interaction]:
    """Yield the interactions that a row covers."""
    return combinations(row.items(), min(strength, len(row)))


def _gain(row: Mapping[str, Any], name: str, missing: Mapping[Interaction, None]) -> int:
    """How many missing ones with a value for the axis ``name`` a partial row contains."""
    items = set(row.items())
    value = (name, row[name])
    return sum(1 for each in missing if value in each and items.issuperset(each))
