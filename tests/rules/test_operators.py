"""The list of operators for which features have kernels."""

from __future__ import annotations

from maintenance.feature_operators import OPERATORS, collect


def test_the_list_equals_the_registered_operators() -> None:
    assert OPERATORS.read_text("utf-8") == collect(), "run `make docs`"
