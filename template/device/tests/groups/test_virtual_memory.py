"""Reserved addresses, and memory that is mapped to them and unmapped."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from host_memory import at
from making import Make

GROUP = "virtual_memory"


@pytest.fixture
def granule(api: ModuleType) -> int:
    return int(api.mapping_granularity(0))


@pytest.fixture
def reserved(api: ModuleType, granule: int) -> Iterator[int]:
    """The first of four granules of addresses. The test unmaps all that it maps."""
    address = api.reserve_addresses(0, 4 * granule)
    yield address
    api.release_addresses(0, address, 4 * granule)


def test_the_granularity_is_a_power_of_two_and_addresses_are_multiples(
    granule: int, reserved: int
) -> None:
    assert granule > 0 and granule & (granule - 1) == 0
    assert reserved % granule == 0


def test_addresses_take_no_memory_until_it_is_mapped(
    api: ModuleType, granule: int, reserved: int
) -> None:
    free = api.memory_info(0).free
    assert api.describe(0, reserved).kind is api.MemoryKind.UNKNOWN
    api.map_memory(0, reserved, granule)
    assert api.memory_info(0).free <= free - granule
    info = api.describe(0, reserved + granule - 1)
    assert (info.kind, info.device, info.base) == (api.MemoryKind.DEVICE, 0, reserved)
    assert api.describe(0, reserved + granule).kind is api.MemoryKind.UNKNOWN
    api.unmap_memory(0, reserved, granule)
    assert api.memory_info(0).free == free
    assert api.describe(0, reserved).kind is api.MemoryKind.UNKNOWN


def test_a_kernel_can_use_several_adjacent_mappings(
    api: ModuleType, stream: Any, granule: int, reserved: int, make: Make
) -> None:
    for piece in (1, 0, 2):
        api.map_memory(0, reserved + piece * granule, granule)
    pinned = make.pinned(3 * granule)
    api.fill_bytes(stream, reserved, 5, 3 * granule)
    api.fill_bytes(stream, reserved + granule - 8, 6, 16)
    api.copy_bytes(stream, (pinned, api.HOST), (reserved, 0), 3 * granule)
    api.synchronize(stream)
    seen = at(pinned, 3 * granule)
    assert (seen[granule - 8 : granule + 8] == 6).all()
    assert (seen[: granule - 8] == 5).all() and (seen[granule + 8 :] == 5).all()
    api.unmap_memory(0, reserved, 3 * granule)


def test_a_part_can_be_unmapped(
    api: ModuleType, stream: Any, granule: int, reserved: int, make: Make
) -> None:
    api.map_memory(0, reserved, 3 * granule)
    api.fill_bytes(stream, reserved, 7, 3 * granule)
    api.synchronize(stream)
    api.unmap_memory(0, reserved + granule, granule)
    assert api.describe(0, reserved + granule).kind is api.MemoryKind.UNKNOWN
    pinned = make.pinned(granule)
    for piece in (0, 2):
        api.copy_bytes(stream, (pinned, api.HOST), (reserved + piece * granule, 0), granule)
        api.synchronize(stream)
        assert (at(pinned, granule) == 7).all()
        api.unmap_memory(0, reserved + piece * granule, granule)


def test_a_failed_map_maps_nothing(api: ModuleType, granule: int) -> None:
    total = api.memory_info(0).total
    bytes_ = (total // granule + 1) * granule
    address = api.reserve_addresses(0, bytes_)
    free = api.memory_info(0).free
    with pytest.raises(MemoryError):
        api.map_memory(0, address, bytes_)
    assert api.memory_info(0).free == free
    assert api.describe(0, address).kind is api.MemoryKind.UNKNOWN
    api.release_addresses(0, address, bytes_)
