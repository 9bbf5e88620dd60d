"""Fixtures for asynchronous failures, the memory history, and operators without a kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from backend import backend
from core.failures import FAILURES, Failure
from support import has_function


@pytest.fixture(params=FAILURES.values(), ids=FAILURES)
def failure(request: pytest.FixtureRequest) -> Iterator[Failure]:
    """Each way in which work of this device can fail asynchronously."""
    failure: Failure = request.param
    reports = backend.get_device_properties(0).reports_errors
    if not set(failure.layers) <= set(backend._C.known_device_layers()):
        pytest.skip("generated without device_layers")
    if not failure.layers and not (reports and has_function("failures", "acknowledge_device")):
        pytest.skip("the device does not report wrong indices, or cannot acknowledge failures")
    before = backend.device_layers()
    if failure.layers:
        backend.set_device_layers([*failure.layers, *before])
    yield failure
    if failure.layers:
        backend._C.faults.clear()
        backend.set_device_layers(before)


@pytest.fixture
def without_history(full_segments: None) -> Iterator[None]:
    """Turn the recording of allocations off after the test."""
    yield
    backend.memory._record_memory_history(None)


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    """A library of operators that exist during the test."""
    with torch.library._scoped_library("fallback_test", "FRAGMENT") as scoped:
        yield scoped
