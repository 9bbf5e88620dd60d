"""Every test starts from device 0, its default stream and a known seed; fallbacks are not warned of."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from backend import ENV_PREFIX, backend
from conformance.evidence import Evidence
from support import natively


def pytest_configure(config: pytest.Config) -> None:
    """Leave the full conformance tier out, and fallbacks unsaid, unless they are asked for."""
    config.pluginmanager.register(Evidence(config))
    if f"{ENV_PREFIX}_FALLBACK" not in os.environ:
        backend.set_fallback_policy("silent")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Leave no device, stream or seed behind for the next test."""
    torch.manual_seed(0)
    yield
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)


@pytest.fixture
def everything_is_native() -> Iterator[None]:
    """Fail a test in which an operator ran on the CPU."""
    with natively():
        yield
