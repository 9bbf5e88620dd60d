"""Memory: the allocators and the memory statistics."""

from __future__ import annotations

import torch

from ..._build import NAME
from ..surfaces import backend, expect, surface


@surface("module", "memory_stats, memory_allocated, memory_reserved, memory_summary, empty_cache")
def module_has_figures() -> None:
    held = torch.ones(1024, device=NAME)
    expect(backend.memory_allocated() >= held.nbytes)
    expect(backend.memory_reserved() >= backend.memory_allocated())
    expect(bool(backend.memory_stats()) and bool(backend.memory_summary()))
    backend.empty_cache()


@surface("allocator", "allocate, getDeviceStats, resetPeakStats, resetAccumulatedStats")
def allocator_counts() -> None:
    before = torch.accelerator.memory_allocated()
    held = torch.ones(1024, device=NAME)
    expect(torch.accelerator.memory_allocated() - before >= held.nbytes)
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    expect(torch.accelerator.max_memory_allocated(), torch.accelerator.memory_allocated())


@surface("allocator", "getMemoryInfo")
def allocator_knows_the_device() -> None:
    free, total = backend.mem_get_info()
    expect(0 <= free <= total)


@surface("allocator", "emptyCache, initialized")
def allocator_gives_back() -> None:
    torch.accelerator.empty_cache()
    expect(torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated())


@surface("allocator", "copy_data")
def allocator_copies_lazily() -> None:
    tensor = torch.ones(2, device=NAME)
    torch._lazy_clone(tensor).add_(1)
    expect(tensor.tolist(), [1.0, 1.0])


@surface("allocator", "HostAllocator::empty_cache")
def host_allocator_gives_back() -> None:
    backend._C.empty_host_cache()


@surface("module", "MemPool, use_mem_pool")
def memory_comes_from_a_pool() -> None:
    pool = backend.MemPool()
    with backend.use_mem_pool(pool):
        expect(torch.ones(2, device=NAME).tolist(), [1.0, 1.0])
