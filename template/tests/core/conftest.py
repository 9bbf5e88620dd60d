"""Fixtures for asynchronous failures, the allocator, and operators without a kernel."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
from backend import backend
from core.failures import FAILURES, Failure
from support import MIB, has_function, natively, take


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
def everything_is_native() -> Iterator[None]:
    """Fail a test in which an operator fell back, unless fallbacks are allowed."""
    with natively():
        yield


def smallest_block() -> int:
    """Return the size in bytes of the block of a tiny tensor, including the device's padding."""
    before = backend.memory_allocated()
    tensor = take(8)
    size = int(backend.memory_allocated() - before)
    del tensor
    return size


def free_blocks(smallest: int) -> Iterator[tuple[torch.Stream, int]]:
    """Yield the stream and the size of the largest possible allocation of each free block of at
    least ``smallest`` bytes.
    """
    for segment in backend.memory_snapshot():
        default = backend.default_stream(segment["device"])
        stream = backend.Stream(
            stream_id=segment["stream"],
            device_index=default.device_index,
            device_type=default.device_type,
        )
        largest = MIB if segment["segment_type"] == "small" else segment["total_size"]
        for block in segment["blocks"]:
            free = block["state"] == "inactive" and segment["segment_pool_id"] == (0, 0)
            if free and block["size"] >= smallest:
                yield stream, min(block["size"], largest)


@pytest.fixture
def full_segments() -> Iterator[None]:
    """Give a test an allocator without free memory. Free blocks in segments that earlier tests
    keep alive are allocated during the test.
    """
    gc.collect()
    smallest = smallest_block()
    backend.synchronize()
    backend.empty_cache()
    kept = []
    while blocks := list(free_blocks(smallest)):
        for stream, size in blocks:
            with backend.stream(stream):
                # With the padding of the device it fills the block.
                kept.append(take(size - smallest + 8))
    yield
    kept.clear()


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
