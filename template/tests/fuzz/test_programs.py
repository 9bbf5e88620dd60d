"""Random programs against the CPU: 5,000 steps, and 50,000 with the slow tests. test_many_programs.py
takes a million."""

from __future__ import annotations

import pytest
from fuzz.known import Entry, Known
from fuzz.search import search
from fuzz.session import divergence

PROGRAMS = 25
"""Programs in a test, of 200 steps each."""

PARTS = 10


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.full] if part else []) for part in range(PARTS)]
)
def test_programs_give_what_they_give_on_the_cpu(part: int) -> None:
    if failing := search(range(part * PROGRAMS, (part + 1) * PROGRAMS)):
        pytest.fail(failing, pytrace=False)


@pytest.mark.parametrize("entry", Known.read().entries, ids=lambda entry: entry.statement)
def test_what_is_known_to_diverge_does(entry: Entry) -> None:
    found = divergence(entry.as_program())
    assert found is not None, "the devices do as the CPU: delete the entry"
    assert entry.matches(found), found
