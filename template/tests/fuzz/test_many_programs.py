"""A million steps of random programs, ``pytest -m fuzz_full``, with other seeds than each run."""

from __future__ import annotations

import pytest
from fuzz.search import search

PROGRAMS = 100
FIRST = 1000
PARTS = 50


@pytest.mark.fuzz_full
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_give_the_results_of_the_cpu(part: int) -> None:
    first = FIRST + part * PROGRAMS
    if failing := search(range(first, first + PROGRAMS)):
        pytest.fail(failing, pytrace=False)
