"""Every test starts on device 0, its default stream and seed 0. Fallbacks do not warn."""

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
    """Reset settings of this machine, and silence fallbacks unless the environment has a policy."""
    # A background job ignores SIGINT, and processes that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Tests abort processes, and each core dump would have hundreds of MB.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # An editable install prints each build, and tests read all that a process prints.
    os.environ.setdefault("SKBUILD_EDITABLE_VERBOSE", "0")
    allowed = may_fall_back()
    if f"{ENV_PREFIX}_FALLBACK" not in os.environ:
        backend.set_fallback_policy("silent")
        if allowed:  # also in processes that tests start
            os.environ[f"{ENV_PREFIX}_FALLBACK"] = "silent"


RUNS_NOWHERE = re.compile(r"is not supported by the device: |\"\w+\" not implemented for '")
"""Matches errors of operators that neither the device nor the CPU supports for this dtype."""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip tests that fail for lack of a kernel, if fallbacks are allowed: operators that run on
    neither side, and ``native`` tests with a fallback. A ``native`` test checks what only kernels
    of the device guarantee, such as the order of equal elements.
    """
    if not may_fall_back():
        return (yield)
    marker = pyfuncitem.get_closest_marker("native")
    fallbacks: dict[str, object] = {}
    # The test may reset the stats. Fallbacks of earlier tests would then hide its own.
    backend.reset_fallback_stats()
    try:
        with backend.count_fallbacks() as fallbacks:
            # Fallbacks of child processes are not counted: `like` runs the same operators here.
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
    """Reset the seed and the fallback stats before a test, and failures, streams and the device
    after it.
    """
    torch.manual_seed(0)
    backend.reset_fallback_stats()
    yield
    forget_failures()
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)


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
                # With the padding of the device it fills the block.
                kept.append(take(size - smallest + 8))
    yield
    kept.clear()
