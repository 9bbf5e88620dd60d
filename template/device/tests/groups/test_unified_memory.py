"""Memory that the host and the device share."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from host_memory import address_of, at, pattern
from simulator_knobs import Knobs

GROUP = "unified_memory"
SIZE = 3 << 12


@pytest.fixture
def memory(api: ModuleType) -> Iterator[int]:
    address = api.allocate_unified(0, SIZE)
    yield address
    api.synchronize(0)
    api.deallocate(0, address)


def test_unified_memory_has_its_own_kind(api: ModuleType, memory: int) -> None:
    info = api.describe(0, memory + 10)
    assert (info.kind, info.device, info.base) == (api.MemoryKind.UNIFIED, 0, memory)
    assert info.bytes >= SIZE
    other = api.Buffer(0, 16)
    assert api.describe(0, other.address).kind is api.MemoryKind.DEVICE


def test_the_host_and_the_device_read_each_others_writes(
    api: ModuleType, stream: Any, memory: int
) -> None:
    api.fill_bytes(stream, memory, 7, SIZE)
    api.synchronize(stream)
    seen = at(api.host_address(0, memory), SIZE)
    assert (seen == 7).all()
    seen[:] = pattern(SIZE)
    back = np.zeros(SIZE, dtype=np.uint8)
    api.copy_bytes(stream, (address_of(back), api.HOST), (memory, 0), SIZE)
    assert (back == pattern(SIZE)).all()


def test_hints_change_no_value(api: ModuleType, stream: Any, memory: int) -> None:
    api.fill_bytes(stream, memory, 5, SIZE)
    for advice in api.MemoryAdvice:
        api.advise(0, memory, SIZE, advice)
        api.prefetch(stream, memory, SIZE, api.HOST)
        api.prefetch(stream, memory + 100, 8, 0)
    api.synchronize(stream)
    assert (at(api.host_address(0, memory), SIZE) == 5).all()


def test_hints_are_applied_in_stream_order(
    api: ModuleType, simulator: Knobs, stream: Any, memory: int
) -> None:
    assert simulator.unified_state(memory) == (0, 0)
    api.prefetch(stream, memory, SIZE, 0)
    api.prefetch(stream, memory, SIZE, api.HOST)
    api.advise(0, memory, SIZE, api.MemoryAdvice.READ_MOSTLY)
    api.synchronize(stream)
    assert simulator.unified_state(memory + SIZE - 1) == (api.HOST, 1)


def test_freed_memory_is_unknown_to_describe(api: ModuleType) -> None:
    address = api.allocate_unified(0, SIZE)
    api.deallocate(0, address)
    assert api.describe(0, address).kind is api.MemoryKind.UNKNOWN
    assert api.host_address(0, address) is None or api.properties(0).host_addressable


def test_unified_memory_counts_as_device_memory(api: ModuleType, memory: int) -> None:
    free = api.memory_info(0).free
    more = api.allocate_unified(0, SIZE)
    assert api.memory_info(0).free <= free
    api.deallocate(0, more)
    with pytest.raises(MemoryError):
        api.allocate_unified(0, 1 << 60)


def test_the_layer_validate_refuses_hints_about_other_memory(
    api: ModuleType, validated: None, stream: Any
) -> None:
    buffer = api.Buffer(0, 64)
    with pytest.raises(api.DeviceError, match="contract of prefetch: the memory is not unified"):
        api.prefetch(stream, buffer.address, 64, 0)
    with pytest.raises(api.DeviceError, match="contract of advise: the memory is not unified"):
        api.advise(0, buffer.address, 64, api.MemoryAdvice.NONE)
