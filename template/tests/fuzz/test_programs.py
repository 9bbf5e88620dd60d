"""Random programs against the CPU: 5,000 steps, and 50,000 with ``-m full``. test_many_programs.py
runs a million."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from fuzz.known import Entry, Known
from fuzz.program import namespace
from fuzz.search import search
from fuzz.session import divergence

PROGRAMS = 25
"""Programs in a test, of 200 steps each."""

PARTS = 10


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.full] if part else []) for part in range(PARTS)]
)
def test_random_programs_give_the_results_of_the_cpu(part: int) -> None:
    if failing := search(range(part * PROGRAMS, (part + 1) * PROGRAMS)):
        pytest.fail(failing, pytrace=False)


@pytest.mark.native
@pytest.mark.parametrize("entry", Known.read().entries, ids=lambda entry: entry.statement)
def test_known_divergences_still_occur(entry: Entry) -> None:
    program = entry.as_program()
    found = divergence(program)
    if entry.gives:
        names = namespace(f"{DEVICE}:0", f"{DEVICE}:0")
        exec(entry.program, names)
        (last,) = program.statements[-1].targets
        torch.testing.assert_close(names[last].cpu(), eval(entry.gives))
    else:
        assert found is not None, "the devices do as the CPU: delete the entry"
    assert found is None or entry.matches(found), found
