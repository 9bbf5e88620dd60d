"""The tests of every operator run only with ``-m conformance_full``, and write evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.evidence import Evidence
from support import ignore_unless_asked_for

FULL = ("test_every_argument.py", "test_every_operator.py")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the plugin that writes the evidence."""
    config.addinivalue_line(
        "markers", "conformance_full: every operator and dtype of PyTorch's table"
    )
    config.pluginmanager.register(Evidence(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the full tier unless it is selected."""
    if collection_path.name not in FULL:
        return None
    return ignore_unless_asked_for(config, collection_path, "conformance_full")
