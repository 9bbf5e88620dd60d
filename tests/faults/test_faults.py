"""The list of faults fits the tree: each text stands in its file once."""

from __future__ import annotations

from collections import Counter

import pytest

from faults.listing import ROOT, Fault, read

FAULTS = read()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_can_be_planted(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text("utf-8")
    assert fault.planted(text) != text


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_that_look_first_are_there(fault: Fault) -> None:
    for test in fault.likely:
        path = test.partition("::")[0]
        assert (ROOT / "template" / path if fault.is_rendered else ROOT / path).exists()


def test_there_are_enough_of_each_kind() -> None:
    kinds = Counter(fault.kind for fault in FAULTS)
    assert len(FAULTS) >= 60
    assert len(kinds) >= 6
    assert {"dropped lock", "lost step", "lost wait", "missing check", "wrong operator"} <= set(
        kinds
    )
