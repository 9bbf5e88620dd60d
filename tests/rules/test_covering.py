"""A covering array contains every legal pair of values, in few rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from covering import Axes, Legal, covering_array, pairs
from feature_sets import axes, is_legal, rows


def every_row(axes: Axes, legal: Legal) -> list[dict[str, Any]]:
    """Return every legal row."""
    rows = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    return [row for row in rows if legal(row)]


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, tuple[int, ...]], frozenset[tuple[str, str]]]:
    """Draw axes of several sizes, and rules like those of features: a 1 requires another 1."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    axes = {f"x{number}": tuple(range(size)) for number, size in enumerate(sizes)}
    able = [name for name, values in axes.items() if len(values) > 1]
    pairs = list(combinations(able, 2))
    rules = draw(st.sets(st.sampled_from(pairs), max_size=4)) if pairs else set()
    return axes, frozenset(rules)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_covering_array_contains_every_legal_pair_in_legal_rows(
    problem: tuple[dict[str, tuple[int, ...]], frozenset[tuple[str, str]]],
) -> None:
    axes, rules = problem

    def legal(part: Mapping[str, Any]) -> bool:
        on = {name for name, value in part.items() if value == 1}
        while grown := {needed for name, needed in rules if name in on} - on:
            on |= grown
        return all(part.get(name, 1) == 1 for name in on)

    rows = covering_array(axes, legal)
    # The oracle: all pairs in legal full rows.
    whole = every_row(axes, legal)
    for names in combinations(axes, min(2, len(axes))):
        wanted = {tuple(row[name] for name in names) for row in whole}
        assert {tuple(row[name] for name in names) for row in rows} == wanted
    assert all(legal(row) and list(row) == list(axes) for row in rows)


def test_pairs_of_many_axes_need_few_rows() -> None:
    axes = {f"x{number}": (0, 1, 2) for number in range(10)}
    assert len(covering_array(axes, lambda part: True)) <= 25  # of 59049


def test_the_rows_cover_the_answers_of_the_template() -> None:
    covered = {pair for row in rows() for pair in combinations(row.items(), 2)}
    assert set(pairs(axes(), is_legal)) <= covered
    assert all(map(is_legal, rows()))
    assert len(rows()) <= 24
