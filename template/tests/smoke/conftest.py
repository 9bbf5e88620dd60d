"""Every test starts on device 0, its default stream and seed 0."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from backend import ENV_PREFIX, backend


def pytest_configure() -> None:
    """Let operators run on the CPU without a warning, unless the environment sets a policy."""
    # An editable install reports each build, and tests read what a process prints.
    os.environ.setdefault("SKBUILD_EDITABLE_VERBOSE", "0")
    if f"{ENV_PREFIX}_FALLBACK" not in os.environ:
        backend.set_fallback_policy("silent")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Reset streams, device and failures after the test."""
    torch.manual_seed(0)
    yield
    try:
        backend.synchronize()
    except RuntimeError:
        backend.acknowledge_failure()
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)
