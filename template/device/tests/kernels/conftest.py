"""Fixtures of the kernel families' tests."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest
from kernels.harness import Device
from kernels.support import Support

DEVICE_ROOT = Path(__file__).resolve().parents[2]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: slow cases that a nightly run takes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without -m, the slow cases stay out."""
    if config.getoption("-m"):
        return
    slow = [item for item in items if item.get_closest_marker("full")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(scope="session")
def device(api: ModuleType) -> Device:
    """The device under test, with what it declares."""
    folder = os.environ.get(f"{api.ENV_PREFIX}_DEVICE", "simulator")
    return Device(api, Support.load(DEVICE_ROOT / folder / "support.toml"))
