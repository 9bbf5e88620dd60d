"""The allocator when events fail or are late, or when the device is lost."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE
from support import needs, run_python

pytestmark = needs(torch.float32)

PRELUDE = f"""
import torch, {PACKAGE}
backend, faults = torch.{DEVICE}, {PACKAGE}._C.faults
SIZE = 3 * 2**20

def take(size=SIZE):
    return torch.empty(size // 4, device="{DEVICE}")

def state_at(address):
    (state,) = [
        block["state"]
        for segment in backend.memory_snapshot()
        for block in segment["blocks"]
        if block["address"] == address
    ]
    return state

def used_on(stream):
    "Return memory of the current stream that another stream uses."
    tensor = take()
    with backend.stream(stream):
        tensor.fill_(1)
    tensor.record_stream(stream)
    return tensor

def finish(stream):
    "Wait, and acknowledge the injected failure."
    try:
        stream.synchronize()
    except RuntimeError as error:
        assert "injected failure" in str(error), error
        backend.acknowledge_failure(stream)

stream = backend.Stream()
stream.record_event().synchronize()
take()
"""

FAULTS = {
    "making it fails": 'faults.inject("event")',
    "recording it fails": 'faults.inject("event", nth=2)',
    "its query tells of a failure": 'faults.inject("event", later=True)',
}


def run_with_faults(code: str, settings: str = "") -> None:
    """Run ``code`` after the prelude. Its stderr, where deleters report errors, must be empty."""
    environment = {f"{ENV_PREFIX}_DEVICE_LAYERS": "faults", "PYTORCH_ALLOC_CONF": settings}
    result = run_python(PRELUDE + code, environment)
    assert result.stderr == ""


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_memory_is_freed_if_its_event_fails(fault: str) -> None:
    run_with_faults(
        f"""
before = backend.memory_stats()
for _ in range(3):
    tensor = used_on(stream)
    address = tensor.data_ptr()
    faults.set_delay(100_000, 100_000)
    with backend.stream(stream):
        tensor.fill_(2)
    faults.set_delay(0, 0)
    {fault}
    del tensor
    assert state_at(address) == "active_pending_free"
    assert take().data_ptr() != address
    finish(stream)
    backend.synchronize()
    again = take()
    assert again.data_ptr() == address
    del again
    backend.Event().record(stream)  # would raise if the fault had not happened yet
after = backend.memory_stats()
for figure in ("allocation", "active", "allocated_bytes", "active_bytes"):
    name = figure + ".all.current"
    assert after[name] == before[name], name
"""
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_pinned_memory_is_freed_if_its_event_fails(fault: str) -> None:
    run_with_faults(
        f"""
target = take()
for _ in range(3):
    pinned = torch.empty(SIZE // 4, pin_memory=True)
    address = pinned.data_ptr()
    with backend.stream(stream):
        target.copy_(pinned, non_blocking=True)
    {fault}
    del pinned
    finish(stream)
    assert torch.empty(SIZE // 4, pin_memory=True).data_ptr() == address
    backend.Event().record(stream)
"""
    )


@pytest.mark.parametrize("nth", [1, 2])
def test_an_allocation_succeeds_if_freeing_segments_fails(nth: int) -> None:
    run_with_faults(
        f"""
tensors = [take(12 * 2**20), take(14 * 2**20)]
tensors.clear()
freed = backend.memory_stats()["num_device_free"]
faults.inject("event", nth={nth})
larger = take(25 * 2**20)
assert backend.memory_stats()["num_device_free"] == freed
reserved = backend.memory_reserved()
again = [take(12 * 2**20), take(14 * 2**20)]
assert backend.memory_reserved() == reserved
assert len({{tensor.data_ptr() for tensor in [*again, larger]}}) == 3
"""
    )


@pytest.mark.parametrize("settings", ["garbage_collection_threshold:0.2", "max_split_size_mb:25"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_allocation_succeeds_if_freeing_by_a_setting_fails(nth: int, settings: str) -> None:
    run_with_faults(
        f"""
total = backend.mem_get_info()[1]
backend.set_per_process_memory_fraction(200 * 2**20 / total)
free = [take(75 * 2**20), take(75 * 2**20)]
free.clear()
faults.inject("event", nth={nth})
larger = take(80 * 2**20)
assert larger.numel() == 20 * 2**20
assert backend.memory_stats()["num_ooms"] == 0
del larger
backend.empty_cache()
assert backend.memory_allocated() == 0
""",
        settings,
    )


@pytest.mark.parametrize("nth", [1, 2])
def test_empty_cache_raises_a_failure_and_keeps_the_memory(nth: int) -> None:
    run_with_faults(
        f"""
kept = take()
reserved = backend.memory_reserved()
larger = take(24 * 2**20)
place = larger.data_ptr()
del larger
faults.inject("event", nth={nth})
try:
    backend.empty_cache()
except RuntimeError as error:
    assert "injected failure" in str(error), error
else:
    raise AssertionError("not told")
assert backend.memory_reserved() == reserved + 24 * 2**20
assert take(24 * 2**20).data_ptr() == place
backend.empty_cache()
assert backend.memory_reserved() == reserved
"""
    )


def test_memory_of_a_lost_device_is_freed_without_an_error() -> None:
    run_with_faults(
        """
before = backend.memory_stats()
tensors = [used_on(stream) for _ in range(3)]
pinned = torch.empty(SIZE // 4, pin_memory=True)
backend.current_stream().wait_stream(stream)
tensors[0].copy_(pinned, non_blocking=True)
faults.inject("launch", code="device_lost")
try:
    tensors[0].fill_(1)
except RuntimeError as error:
    assert "injected failure" in str(error), error
else:
    raise AssertionError("not lost")
del tensors, pinned
torch.empty(SIZE // 4, pin_memory=True)
take()  # from the cache
try:
    take(64 * 2**20)
except RuntimeError as error:
    assert "is lost" in str(error), error
else:
    raise AssertionError("a lost device gave memory")
faults.clear()
backend.synchronize()
take()
after = backend.memory_stats()
for figure in ("allocation", "active", "allocated_bytes", "active_bytes"):
    name = figure + ".all.current"
    assert after[name] == before[name], name
"""
    )
