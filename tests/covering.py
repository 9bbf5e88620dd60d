"""Covering arrays: few rows that contain every legal pair of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from random import Random
from typing import Any

Axes = Mapping[str, tuple[Any, ...]]
Legal = Callable[[Mapping[str, Any]], bool]
Pair = tuple[tuple[str, Any], ...]
"""Values of two axes, in the order of the axes."""

TRIES = 10
"""Number of greedy searches; each takes 0.1 s, and each row that it saves is a build."""


def pairs(axes: Axes, legal: Legal) -> Iterator[Pair]:
    """Yield every legal pair of values, and every value if there is one axis."""
    for names in combinations(axes, min(2, len(axes))):
        for values in product(*(axes[name] for name in names)):
            found = tuple(zip(names, values, strict=True))
            if legal(dict(found)):
                yield found


def covering_array(axes: Axes, legal: Legal) -> list[dict[str, Any]]:
    """Return rows that contain every legal pair: the smallest result of several tries.

    Equal arguments give equal rows on every machine. It must be possible to complete each part that
    is ``legal`` one value at a time.
    """
    wanted = list(pairs(axes, legal))
    return min((_greedy(axes, legal, wanted, Random(seed)) for seed in range(TRIES)), key=len)


def _greedy(axes: Axes, legal: Legal, wanted: list[Pair], order: Random) -> list[dict[str, Any]]:
    """Start each row with an uncovered pair, then choose the values with the largest gains."""
    missing = dict.fromkeys(order.sample(wanted, len(wanted)))
    rows = []
    while missing:
        row = dict(next(iter(missing)))

        def gain(name: str, value: Any, row: dict[str, Any] = row) -> int:
            return sum(
                pair in missing or pair[::-1] in missing
                for pair in (((name, value), other) for other in row.items())
            )

        for name in order.sample(list(axes), len(axes)):
            if name not in row:
                values = order.sample(axes[name], len(axes[name]))
                possible = [value for value in values if legal({**row, name: value})]
                row[name] = max(possible, key=lambda value, name=name: gain(name, value))  # type: ignore[misc]
        rows.append({name: row[name] for name in axes})
        for pair in combinations(rows[-1].items(), min(2, len(axes))):
            missing.pop(pair, None)
    return rows
