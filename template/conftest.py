"""Chooses the tests: `pytest` runs a sample in minutes, `pytest -m full` runs every test.

The sample has no test that is marked `full`. Of a test with parameters, it has cases that cover
every pair of values of two parameters. It is the same on every machine.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections import defaultdict

import pytest

# PyTorch and numpy read this when they are imported. The processes of `-n` share the cores, and
# threads that wait for each other would take half of them.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line for the beginning of a run."""
    return None if config.option.markexpr else "a sample of the tests: `-m full` runs all of them"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not in the sample, unless `-m` chooses the tests."""
    if config.option.markexpr == "full":
        for item in items:
            item.add_marker("full")
    elif not config.option.markexpr and not config.getoption("--write-support", False):
        chosen = pairwise([item for item in items if not item.get_closest_marker("full")])
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def pairwise(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests without parameters, and cases of the others that have every pair of values.

    In the order of their names' checksums, chooses a case if it has a pair that no earlier one has.
    """
    chosen = set()
    covered = defaultdict(set)
    for item in sorted(items, key=lambda item: zlib.crc32(item.nodeid.encode())):
        case = getattr(item, "callspec", None)
        values = [(name, repr(value)) for name, value in case.params.items()] if case else []
        pairs = {*itertools.combinations(values, 2)} or {*values}
        known = covered[item.nodeid.partition("[")[0]]
        if not pairs or not pairs <= known:
            chosen.add(item)
            known |= pairs
    return chosen
