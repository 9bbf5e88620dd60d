"""Every test starts from device 0, its default stream and a known seed; fallbacks are not warned of."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
from collections.abc import Generator, Iterator

import pytest
import torch
from backend import ENV_PREFIX, backend
from support import MIB, forget_failures, may_fall_back, natively, take


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests apart from what this machine sets, and fallbacks silent unless asked for."""
    # A job in the background has Ctrl-C ignored, and so would the processes that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests let processes die: each would leave a core of hundreds of MB.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # An editable install tells of each build, and tests read all that a process prints.
    os.environ.setdefault("SKBUILD_EDITABLE_VERBOSE", "0")
    allowed = may_fall_back()
    if f"{ENV_PREFIX}_FALLBACK" not in os.environ:
        backend.set_fallback_policy("silent")
        if allowed:  # in the processes that tests start as well
            os.environ[f"{ENV_PREFIX}_FALLBACK"] = "silent"


RUNS_NOWHERE = re.compile(r"is not supported by the device: |\"\w+\" not implemented for '")
"""An operator that the device declines, and that the CPU lacks, for this type or at all."""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip what fails for want of a kernel, where the CPU may do the work: an operator that runs
    on neither, and a test of what only kernels of the device promise (``native``), such as the
    order of equal elements, after the CPU did a part of its work.
    """
    if not may_fall_back():
        return (yield)
    marker = pyfuncitem.get_closest_marker("native")
    fallbacks: dict[str, object] = {}
    # The test may reset the figures, and what earlier tests have counted would hide its own then.
    backend.reset_fallback_stats()
    try:
        with backend.count_fallbacks() as fallbacks:
            # What processes that the test starts do is not seen: `like` does it here.
            if marker is not None:
                marker.kwargs.get("like", lambda: None)()
            return (yield)
    except (Exception, pytest.fail.Exception) as error:
        if isinstance(error, NotImplementedError) and RUNS_NOWHERE.search(str(error)):
            pytest.skip(f"there is no kernel for it: {error}")
        if marker is None or not fallbacks:
            raise
        pytest.skip(f"the CPU, which worked here, does not promise it: {', '.join(fallbacks)}")


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Leave no device, stream, seed or failure behind for the next test."""
    torch.manual_seed(0)
    yield
    forget_failures()
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)


@pytest.fixture
def everything_is_native() -> Iterator[None]:
    """Fail a test in which an operator ran on the CPU, unless it may."""
    with natively():
        yield


def smallest_block() -> int:
    """Return the bytes of the block of a tiny tensor, what the device keeps unused included."""
    before = backend.memory_allocated()
    tensor = take(8)
    size = int(backend.memory_allocated() - before)
    del tensor
    return size


def free_blocks(smallest: int) -> Iterator[tuple[torch.Stream, int]]:
    """Yield the stream and the size of what can be taken at once of each block that is free and
    not smaller than ``smallest``.
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
    """Give a test an allocator without free memory: what tensors that earlier tests keep alive
    leave free in their segments is taken meanwhile.
    """
    if not hasattr(backend, "memory_snapshot"):
        pytest.skip("generated without memory_tools")
    gc.collect()
    smallest = smallest_block()
    backend.synchronize()
    backend.empty_cache()
    kept = []
    while blocks := list(free_blocks(smallest)):
        for stream, size in blocks:
            with backend.stream(stream):
                # With what the device keeps unused behind it, as large as the block.
                kept.append(take(size - smallest + 8))
    yield
    kept.clear()
