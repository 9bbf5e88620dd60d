"""A covering array holds every legal combination of its strength, and few rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintenance.smoke import STRENGTHS
from maintenance.smoke.answers import space
from maintenance.smoke.covering import (
    Axes,
    Legal,
    covering_array,
    interactions,
    interactions_in,
)
from maintenance.smoke.run import choose


def anything(part: Mapping[str, Any]) -> bool:
    return True


def every_row(axes: Axes, legal: Legal) -> list[dict[str, Any]]:
    """Return every legal row."""
    rows = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    return [row for row in rows if legal(row)]


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, tuple[int, ...]], frozenset[tuple[str, str]]]:
    """Axes of several sizes; rules of the kind that features have: one value 1 requires another."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    axes = {f"x{number}": tuple(range(size)) for number, size in enumerate(sizes)}
    able = [name for name, values in axes.items() if len(values) > 1]
    pairs = list(combinations(able, 2))
    rules = draw(st.sets(st.sampled_from(pairs), max_size=4)) if pairs else set()
    return axes, frozenset(rules)


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 3))
def test_every_legal_part_is_held_and_every_row_is_legal(
    problem: tuple[dict[str, tuple[int, ...]], frozenset[tuple[str, str]]], strength: int
) -> None:
    axes, rules = problem

    def legal(part: Mapping[str, Any]) -> bool:
        on = {name for name, value in part.items() if value == 1}
        while grown := {needed for name, needed in rules if name in on} - on:
            on |= grown
        return all(part.get(name, 1) == 1 for name in on)

    rows = covering_array(axes, strength, legal)
    # An oracle of its own: what full rows hold.
    whole = every_row(axes, legal)
    for names in combinations(axes, min(strength, len(axes))):
        wanted = {tuple(row[name] for name in names) for row in whole}
        assert {tuple(row[name] for name in names) for row in rows} == wanted
    assert all(legal(row) and list(row) == list(axes) for row in rows)


def test_pairs_of_many_axes_need_few_rows() -> None:
    axes = {f"x{number}": (0, 1, 2) for number in range(10)}
    assert len(covering_array(axes, 2, anything)) <= 25  # of 59049
    assert len(every_row({name: axes[name] for name in ("x0", "x1", "x2")}, anything)) == 27


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_rows_of_a_run_cover_the_template(strength: str) -> None:
    axes = space({})
    rows = choose(axes, strength)
    number = STRENGTHS[strength]
    assert number
    in_order = ({name: row[name] for name in axes.axes} for row in rows)
    covered = {part for row in in_order for part in interactions_in(row, number)}
    assert set(interactions(axes.axes, number, axes.legal)) <= covered
    seen = {name: {row[name] for row in rows} for name in axes.axes}
    assert seen == {name: set(values) for name, values in axes.axes.items()}
    assert all(axes.legal(row) for row in rows)


def test_shards_share_the_rows_out() -> None:
    axes = space({})
    whole = choose(axes, "pairwise")
    parts = [choose(axes, "pairwise", f"{number}/3") for number in (1, 2, 3)]
    assert sum(map(len, parts)) == len(whole)
    assert all(row in whole for part in parts for row in part)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
