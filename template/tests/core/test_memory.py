"""The allocator's statistics, its cache, and leaks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import MIB, names, needs, needs_two_devices, take


@pytest.fixture(autouse=True)
def fresh_figures(full_segments: None) -> None:
    backend.reset_peak_memory_stats()
    backend.reset_accumulated_memory_stats()


def test_a_reset_clears_accumulated_statistics() -> None:
    take(MIB)
    stats = backend.memory_stats()
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 1
    assert stats["allocated_bytes.all.allocated"] >= MIB
    backend.reset_accumulated_memory_stats()
    assert backend.memory_stats()["allocation.all.allocated"] == 0


def test_torch_accelerator_has_the_same_statistics() -> None:
    tensor = take(MIB)
    assert torch.accelerator.memory_allocated() == backend.memory_allocated() >= tensor.nbytes
    assert torch.accelerator.memory_reserved() == backend.memory_reserved()
    assert torch.accelerator.max_memory_allocated() == backend.max_memory_allocated()
    figures = backend.memory_stats()
    for name, value in torch.accelerator.memory_stats().items():
        assert figures[name] == value, name


def test_device_reports_free_and_total_memory() -> None:
    free, total = backend.mem_get_info()
    assert 0 < free <= total == backend.get_device_properties(0).total_memory
    tensor = take(32 * MIB)
    assert backend.mem_get_info()[0] <= free - tensor.nbytes
    assert torch.accelerator.get_memory_info() == backend.mem_get_info()


@needs_two_devices
def test_statistics_are_per_device() -> None:
    before = backend.memory_allocated(0), backend.memory_allocated(1)
    tensor = take(4 * MIB, f"{DEVICE}:1")
    assert backend.memory_allocated(0) == before[0]
    assert backend.memory_allocated(f"{DEVICE}:1") == before[1] + tensor.nbytes
    with backend.device(1):
        assert backend.memory_allocated() == before[1] + tensor.nbytes


def test_the_summary_shows_the_statistics() -> None:
    tensor = take(3 * MIB)
    rows = {line[:26].strip(): line.split() for line in backend.memory_summary().splitlines()}
    held = f"{backend.memory_allocated() / MIB:.2f}"
    assert rows["allocated memory"][2:4] == [held, "MiB"]
    assert rows["memory of device 0"][-4:] == ["current", "peak", "allocated", "freed"]
    assert {"of large blocks", "of small blocks", "out of memory", "oversize segments"} <= set(rows)
    assert "of small blocks" not in backend.memory_summary(0, abbreviated=True)
    assert tensor.nbytes == 3 * MIB


def test_statistics_have_the_names_of_torch_cuda() -> None:
    take(MIB)
    per_kind = """allocation segment active inactive_split allocated_bytes reserved_bytes
        active_bytes inactive_split_bytes requested_bytes"""
    columns = ["current", "peak", "allocated", "freed"]
    expected = {
        f"{name}.{kind}.{column}"
        for name in names(per_kind)
        for kind in ("all", "large_pool", "small_pool")
        for column in columns
    }
    expected |= {
        f"{name}.{column}"
        for name in ("oversize_allocations", "oversize_segments")
        for column in columns
    }
    expected |= set(
        names(
            """num_alloc_retries num_ooms num_oom_rejections num_sync_all_streams num_device_alloc
            num_device_free max_split_size"""
        )
    )
    assert {name for name in backend.memory_stats() if "private_pools" not in name} == expected


def test_statistics_of_small_and_large_blocks_add_up() -> None:
    kept = [take(size) for size in (8, 1000, 3 * MIB, 30 * MIB)]
    figures = backend.memory_stats()
    assert figures["requested_bytes.all.current"] <= figures["active_bytes.all.current"]
    for name in ("allocation", "allocated_bytes", "reserved_bytes", "segment", "active_bytes"):
        kinds = [figures[f"{name}.{kind}.current"] for kind in ("small_pool", "large_pool")]
        assert sum(kinds) == figures[f"{name}.all.current"]
        assert all(kinds)
    assert len(kept) == 4


@needs(torch.float32)
def test_empty_tensors_take_no_memory() -> None:
    before = backend.memory_stats()["allocation.all.current"]
    tensor = torch.empty(0, 5, device=DEVICE)
    assert backend.memory_stats()["allocation.all.current"] == before
    assert (tensor + 1).sum().item() == 0


def test_a_deleted_private_pool_has_no_statistics() -> None:
    def private() -> dict[Any, Any]:
        figures: dict[Any, Any] = backend.memory_stats_as_nested_dict()
        return figures["reserved_bytes_by_private_pools"]

    before = set(private())
    pool = backend.MemPool()
    with backend.use_mem_pool(pool):
        tensor = take(8)
    assert private().keys() - before == {pool.id}
    del tensor, pool
    assert set(private()) == before


def test_nested_statistics_equal_the_flat_ones() -> None:
    tensor = take(MIB)
    nested = backend.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == backend.memory_allocated()
    assert nested["num_ooms"] == backend.memory_stats()["num_ooms"]
    assert backend.device_memory_used() >= tensor.nbytes
