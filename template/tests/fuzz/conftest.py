"""Fixtures of the fuzzer: programs run without warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ignore_unless_asked_for


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "fuzz_full: a million steps of random programs")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the million steps unless they are selected."""
    if collection_path.name != "test_many_programs.py":
        return None
    return ignore_unless_asked_for(config, collection_path, "fuzz_full")


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Hide the warnings of operators: programs call them with unusual arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
