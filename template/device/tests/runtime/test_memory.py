"""Memory: allocation, deallocation, description, and out-of-memory errors."""

from __future__ import annotations

import gc
import itertools
import random
from types import ModuleType

import pytest
from host_memory import at, pattern
from making import Make

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_is_given_back_meanwhile() -> None:
    """Frees buffers that earlier tests left in cycles, such as tracebacks."""
    gc.collect()


def test_allocations_are_aligned_and_apart(api: ModuleType) -> None:
    alignment = api.properties(0).allocation_alignment
    sizes = [1, 31, 512, 513, 4096, 3 * MIB + 1]
    blocks = sorted((api.allocate(0, size), size) for size in sizes)
    assert all(address % alignment == 0 for address, _ in blocks)
    for (address, size), (next_address, _) in itertools.pairwise(blocks):
        assert address + size <= next_address
    for address, _ in blocks:
        api.deallocate(0, address)


def test_free_memory_falls_and_rises_with_allocations(api: ModuleType) -> None:
    before = api.memory_info(0)
    address = api.allocate(0, 8 * MIB)
    during = api.memory_info(0)
    api.deallocate(0, address)
    assert before.free - during.free >= 8 * MIB
    assert during.total == before.total
    assert api.memory_info(0).free == before.free


def test_an_allocation_does_not_change_free_memory_of_another_device(
    api: ModuleType, second_device: int
) -> None:
    before = api.memory_info(second_device).free
    address = api.allocate(0, 8 * MIB)
    assert api.memory_info(second_device).free == before
    api.deallocate(0, address)


def test_allocations_freed_in_any_order_leak_nothing(api: ModuleType) -> None:
    chance = random.Random(1)
    before = api.memory_info(0).free
    live: list[int] = []
    for _ in range(500):
        if live and chance.random() < 0.45:
            api.deallocate(0, live.pop(chance.randrange(len(live))))
        else:
            live.append(api.allocate(0, chance.choice([1, 600, 5000, 100_000, 3 * MIB])))
    for address in live:
        api.deallocate(0, address)
    assert api.memory_info(0).free == before


def test_describe_finds_every_byte_of_an_allocation(api: ModuleType) -> None:
    address = api.allocate(0, 1000)
    for offset in (0, 1, 999):
        info = api.describe(0, address + offset)
        assert info.kind is api.MemoryKind.DEVICE
        assert info.device == 0
        assert info.base == address
        assert info.bytes >= 1000
    api.deallocate(0, address)
    assert api.describe(0, address).kind is api.MemoryKind.UNKNOWN


def test_describe_names_the_device_that_owns_the_memory(
    api: ModuleType, second_device: int
) -> None:
    address = api.allocate(second_device, 64)
    assert api.describe(second_device, address).device == second_device
    api.deallocate(second_device, address)


def test_describe_finds_every_byte_of_pinned_memory(api: ModuleType, make: Make) -> None:
    address = make.pinned(1000)
    for offset in (0, 1, 999):
        info = api.describe(api.HOST, address + offset)
        assert info.kind is api.MemoryKind.HOST_PINNED
        assert info.device == api.HOST
        assert info.base == address


def test_other_host_memory_is_unknown_to_describe(api: ModuleType) -> None:
    info = api.describe(api.HOST, pattern(64).ctypes.data)
    assert info.kind is api.MemoryKind.UNKNOWN
    assert info.device == api.HOST
    assert api.describe(api.HOST, 0).kind is api.MemoryKind.UNKNOWN


def test_describe_with_another_device_does_not_find_the_memory(api: ModuleType, make: Make) -> None:
    address = api.allocate(0, 64)
    others = [api.describe(device, address) for device in range(1, api.device_count())]
    info = api.describe(api.HOST, address)
    api.deallocate(0, address)
    assert info.kind is not api.MemoryKind.DEVICE
    assert info.device == api.HOST
    # Another device may use the same address for its own memory.
    assert all(
        info.kind is api.MemoryKind.UNKNOWN or info.device == device
        for device, info in enumerate(others, 1)
    )
    assert api.describe(0, make.pinned(64)).kind is not api.MemoryKind.HOST_PINNED


def test_the_host_can_read_and_write_pinned_memory(make: Make) -> None:
    memory = at(make.pinned(4096), 4096)
    expected = pattern(4096)
    memory[:] = expected
    assert (memory == expected).all()


def test_too_large_allocations_are_refused(api: ModuleType) -> None:
    total = api.properties(0).total_memory
    for size in (total + 1, 1 << 60, (1 << 64) - 1):
        with pytest.raises(MemoryError):
            api.allocate(0, size)
