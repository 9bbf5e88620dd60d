"""Fixtures of the fuzzer: programs run without warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "fuzz_full: a million steps of random programs")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the million steps unless the mark or their file's name selects them."""
    name = collection_path.name
    selected = "fuzz_full" in config.option.markexpr or name in " ".join(config.args)
    return True if name == "test_many_programs.py" and not selected else None


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Hide the warnings of operators: programs call them with unusual arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
