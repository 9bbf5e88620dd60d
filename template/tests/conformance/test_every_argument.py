"""The full tier of wrong arguments, ``pytest -m conformance_full``: those of every native overload."""

from __future__ import annotations

import pytest
from conformance.test_arguments import findings

pytestmark = pytest.mark.conformance_full

PARTS = 12
"""The number of tests among which the overloads are divided."""


@pytest.mark.parametrize("part", range(PARTS))
def test_wrong_arguments(part: int) -> None:
    """A new overload needs a sample of PyTorch, or a call in argument_bases.py."""
    assert findings("--part", f"{part}/{PARTS}") == []
