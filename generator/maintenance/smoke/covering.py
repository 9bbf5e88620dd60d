"""Covering arrays: few rows in which every legal combination of so many values occurs together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from random import Random
from typing import Any

Axes = Mapping[str, tuple[Any, ...]]
Legal = Callable[[Mapping[str, Any]], bool]
Part = tuple[tuple[str, Any], ...]
"""Values for some axes, in the order of the axes."""

TRIES = 100
"""Greedy searches in different orders; they take milliseconds, and a row takes a build."""


def parts(axes: Axes, strength: int, legal: Legal) -> Iterator[Part]:
    """Yield every legal combination of values of so many axes."""
    for names in combinations(axes, min(strength, len(axes))):
        for values in product(*(axes[name] for name in names)):
            part = tuple(zip(names, values, strict=True))
            if legal(dict(part)):
                yield part


def covering_array(axes: Axes, strength: int, legal: Legal) -> list[dict[str, Any]]:
    """Return rows that hold every legal part of the given strength: the fewest of some tries.

    Equal arguments give equal rows on every machine, so that shards fit together. ``legal`` must
    allow every legal part to be completed one value at a time.
    """
    wanted = list(parts(axes, strength, legal))
    tries = (_greedy(axes, strength, legal, wanted, Random(seed)) for seed in range(TRIES))
    return min(tries, key=len)


def _greedy(
    axes: Axes, strength: int, legal: Legal, wanted: list[Part], order: Random
) -> list[dict[str, Any]]:
    """Start each row from a part that none holds yet and add, axis by axis, what adds most."""
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
        for part in held(rows[-1], strength):
            missing.pop(part, None)
    return rows


def every_row(axes: Axes, legal: Legal) -> list[dict[str, Any]]:
    """Return all legal rows."""
    return [dict(part) for part in parts(axes, len(axes), legal)]


def held(row: Mapping[str, Any], strength: int) -> Iterator[Part]:
    """Yield the parts of a row."""
    return combinations(row.items(), min(strength, len(row)))


def uncovered(rows: list[dict[str, Any]], axes: Axes, strength: int, legal: Legal) -> set[Part]:
    """Return the legal parts that no row holds."""
    covered = {part for row in rows for part in held({name: row[name] for name in axes}, strength)}
    return set(parts(axes, strength, legal)) - covered


def _gain(row: Mapping[str, Any], name: str, missing: Mapping[Part, None]) -> int:
    """How many missing parts a row holds, as far as it is filled, that have to do with an axis."""
    items = set(row.items())
    value = (name, row[name])
    return sum(1 for part in missing if value in part and items.issuperset(part))
