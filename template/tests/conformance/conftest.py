"""The tests of every operator run only with ``-m conformance_full``, and write evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.evidence import Evidence

FULL = ("test_every_argument.py", "test_every_operator.py")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the plugin that writes the evidence."""
    config.addinivalue_line(
        "markers", "conformance_full: every operator and dtype of PyTorch's table"
    )
    config.pluginmanager.register(Evidence(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore a file of the full tier unless the mark or its name selects it."""
    name = collection_path.name
    selected = "conformance_full" in config.option.markexpr or name in " ".join(config.args)
    return True if name in FULL and not selected else None
