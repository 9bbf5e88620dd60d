"""Other libraries are slow to import: their tests run only with ``-m ecosystem``."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "ecosystem: other libraries, those that are installed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests unless ``-m`` names the marker."""
    if "ecosystem" not in (config.getoption("-m") or ""):
        left_out = [item for item in items if item.get_closest_marker("ecosystem")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def library(request: pytest.FixtureRequest) -> ModuleType | None:
    """Skip a test whose libraries, the marker's arguments, cannot be imported."""
    marker: Any = request.node.get_closest_marker("ecosystem")
    module = None
    for name in marker.args:
        try:
            module = importlib.import_module(name)
        except (ImportError, RuntimeError) as error:
            pytest.skip(f"{name} cannot be imported: {error}")
    return module
