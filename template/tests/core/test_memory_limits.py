"""Out of memory, the memory fraction of a process, and settings of PYTORCH_ALLOC_CONF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from core.allocator import MEMORY_PRELUDE, run_with_settings
from support import (
    MIB,
    needs,
    needs_two_devices,
    run_python,
    take,
)

pytestmark = pytest.mark.usefixtures("full_segments")


def test_cache_is_emptied_before_memory_runs_out() -> None:
    free, _ = backend.mem_get_info()
    retries = backend.memory_stats()["num_alloc_retries"]
    # In parts, as a device may have a limit for one allocation.
    with backend.stream(backend.Stream()):
        first = [take(int(free * 0.2)) for _ in range(4)]
    del first
    second = take(int(free * 0.24))
    assert backend.memory_stats()["num_alloc_retries"] == retries + 1
    del second
    backend.empty_cache()


def test_a_failed_request_does_not_change_the_statistics() -> None:
    kept = take(3 * MIB)
    figures = backend.memory_stats()
    with pytest.raises(torch.OutOfMemoryError):
        take(2 * backend.mem_get_info()[1])
    after = backend.memory_stats()
    for name in ("allocated_bytes", "active_bytes", "reserved_bytes", "allocation", "segment"):
        assert after[f"{name}.all.current"] == figures[f"{name}.all.current"], name
    assert kept.nbytes == 3 * MIB


# --- The memory fraction of a process ---


@pytest.fixture
def share() -> Iterator[float]:
    """Limit this process to a tenth of the memory of device 0."""
    backend.set_per_process_memory_fraction(0.1, 0)
    yield 0.1
    backend.set_per_process_memory_fraction(1.0, 0)


def test_a_process_allocates_at_most_its_fraction(share: float) -> None:
    total = backend.mem_get_info()[1]
    assert backend.get_per_process_memory_fraction() == share
    with pytest.raises(torch.OutOfMemoryError, match="set_per_process_memory_fraction allows"):
        take(int(total * 0.11))
    first = take(int(total * 0.06))
    with pytest.raises(torch.OutOfMemoryError):
        take(int(total * 0.06))
    del first
    # Cached memory is released first.
    assert take(int(total * 0.08)).nbytes > 0
    backend.set_per_process_memory_fraction(1.0)
    assert take(int(total * 0.11)).nbytes > 0


@needs_two_devices
def test_the_fraction_is_per_device(share: float) -> None:
    assert backend.get_per_process_memory_fraction(1) == 1
    assert take(int(backend.mem_get_info(1)[1] * 0.11), f"{DEVICE}:1").nbytes > 0


def test_a_fraction_of_0_keeps_existing_tensors() -> None:
    tensor = take(MIB)
    rejections = backend.memory_stats()["num_oom_rejections"]
    backend.set_per_process_memory_fraction(0.0)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            take(30 * MIB)
        assert backend.memory_stats()["num_oom_rejections"] == rejections + 1
        assert backend.memory_allocated() >= tensor.nbytes
    finally:
        backend.set_per_process_memory_fraction(1.0)


def test_the_error_for_a_fraction_above_1_names_the_size() -> None:
    total = backend.mem_get_info()[1] // MIB
    with pytest.raises(ValueError, match=f"which is {2 * total} MiB of a device that has {total}$"):
        backend.set_per_process_memory_fraction(2.0)


@pytest.mark.parametrize(
    ("fraction", "error"), [(-0.1, ValueError), (1.5, ValueError), (1, TypeError), ("1", TypeError)]
)
def test_a_wrong_fraction_is_refused(fraction: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="fraction must be"):
        backend.set_per_process_memory_fraction(fraction)
    assert backend.get_per_process_memory_fraction() == 1


# --- Settings: PyTorch reads them once, so each test starts a process ---


PROGRAMS = {
    "without settings a large free block is split": (
        "",
        """
first = take(100 * MIB)
address = first.data_ptr()
del first
parts = [take(40 * MIB), take(40 * MIB)]
assert [part.data_ptr() - address for part in parts] == [0, 40 * MIB]
assert figure("max_split_size") == -1
assert figure("inactive_split_bytes.large_pool.current") == 20 * MIB
""",
    ),
    "max split size keeps large blocks whole": (
        "max_split_size_mb:50",
        """
first = take(100 * MIB)
address = first.data_ptr()
assert figure("oversize_allocations.current") == figure("oversize_segments.current") == 1
del first
small = take(40 * MIB)
assert figure("segment.all.current") == 2, "a small request must not break up the block"
near = take(90 * MIB)
assert near.data_ptr() == address, "one of nearly the size may have it"
assert figure("inactive_split.all.current") == 0
assert figure("max_split_size") == 50 * MIB
""",
    ),
    "oversize blocks are given back before the whole cache": (
        "max_split_size_mb:25",
        """
total = backend.mem_get_info()[1]
backend.set_per_process_memory_fraction(200 * MIB / total)
kept = take(15 * MIB)
del kept
large = [take(50 * MIB), take(50 * MIB), take(75 * MIB)]
del large[:2]
again = take(80 * MIB)
assert figure("num_alloc_retries") == 0
assert figure("num_device_free") == 2
""",
    ),
    "garbage is collected above the threshold": (
        "garbage_collection_threshold:0.5",
        """
total = backend.mem_get_info()[1]
backend.set_per_process_memory_fraction(200 * MIB / total)
old = take(50 * MIB)
address = old.data_ptr()
del old
for _ in range(10):
    recent = take(60 * MIB)
    del recent
assert figure("num_device_free") == 0
held = take(70 * MIB)
assert figure("num_device_free") == 1 and figure("num_alloc_retries") == 0
assert address not in [segment["address"] for segment in backend.memory_snapshot()]
""",
    ),
    "sizes are rounded to divisions of powers of 2": (
        "roundup_power2_divisions:4",
        """
tensor = take(5 * MIB + 4)
assert figure("allocated_bytes.all.current") == 6 * MIB
assert figure("requested_bytes.all.current") == 5 * MIB + 4
""",
    ),
    "settings may change while the process runs": (
        "",
        """
torch._C._accelerator_setAllocatorSettings("roundup_power2_divisions:4")
tensor = take(5 * MIB + 4)
assert figure("allocated_bytes.all.current") == 6 * MIB
""",
    ),
}
"""The settings of a process, and what it does."""


@needs(torch.float32)
@pytest.mark.parametrize("name", PROGRAMS)
def test_settings(name: str) -> None:
    run_with_settings(*PROGRAMS[name])


@needs(torch.float32)
@pytest.mark.parametrize(
    "settings", ["max_split_size_mb:x", "max_split_size_mb", ",", "max_split_size_mb:1"]
)
def test_invalid_settings_are_refused(settings: str) -> None:
    run_with_settings(
        settings,
        f"""
for _ in range(2):
    try:
        take(MIB)
    except ValueError as error:
        assert str(error).startswith("PYTORCH_ALLOC_CONF={settings} cannot be read: "), error
        assert "INTERNAL ASSERT" not in str(error)
    else:
        raise AssertionError("not refused")
""",
    )


@needs(torch.float32)
def test_settings_without_effect_cause_a_warning() -> None:
    result = run_python(
        f"{MEMORY_PRELUDE}\nx, y = take(MIB), torch.ones(3, device='{DEVICE}:0')",
        {
            "PYTORCH_ALLOC_CONF": "roundup_power2_divisions:[256:1,>:2],nonsense:1,pinned_max_cached_size_mb:64"
        },
    )
    warned = [line for line in result.stderr.splitlines() if "PYTORCH_ALLOC_CONF" in line]
    assert len(warned) == 1
    assert "the setting 'nonsense' has no effect" in warned[0]
