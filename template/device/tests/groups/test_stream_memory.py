"""Memory that comes and goes in stream order."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from host_memory import at

GROUP = "stream_memory"
SIZE = 4096


def test_memory_serves_work_between_its_two_ends(
    api: ModuleType, stream: Any, make_pinned: Callable[[int], int]
) -> None:
    pinned = make_pinned(SIZE)
    for value in range(1, 4):
        address = api.allocate_async(stream, SIZE)
        api.fill_bytes(stream, address, value, SIZE)
        api.copy_bytes(stream, (pinned, api.HOST), (address, 0), SIZE)
        api.deallocate_async(stream, address)
        api.synchronize(stream)
        assert (at(pinned, SIZE) == value).all()


def test_memory_is_described_and_taken_by_deallocate(api: ModuleType, stream: Any) -> None:
    address = api.allocate_async(stream, SIZE)
    api.synchronize(stream)
    info = api.describe(0, address + SIZE - 1)
    assert (info.kind, info.device, info.base) == (api.MemoryKind.DEVICE, 0, address)
    api.deallocate(0, address)
    assert api.describe(0, address).kind is api.MemoryKind.UNKNOWN


def test_memory_is_kept_until_the_stream_comes_to_its_end(
    api: ModuleType, stream: Any, gate: Any, make_pinned: Callable[[int], int]
) -> None:
    pinned = make_pinned(SIZE)
    address = api.allocate_async(stream, SIZE)
    api.synchronize(stream)
    gate.hold(stream)
    api.fill_bytes(stream, address, 7, SIZE)
    api.copy_bytes(stream, (pinned, api.HOST), (address, 0), SIZE)
    api.deallocate_async(stream, address)
    other = api.allocate(0, SIZE)
    api.fill_bytes(api.default_stream(0), other, 8, SIZE)
    api.synchronize(api.default_stream(0))
    gate.open()
    api.synchronize(stream)
    api.deallocate(0, other)
    assert (at(pinned, SIZE) == 7).all()


def test_memory_can_be_freed_on_another_stream(
    api: ModuleType, make_stream: Callable[..., Any], make_event: Callable[..., Any]
) -> None:
    first, second, event = make_stream(), make_stream(), make_event()
    address = api.allocate_async(first, SIZE)
    api.fill_bytes(first, address, 1, SIZE)
    api.record(event, first)
    api.wait(second, event)
    api.deallocate_async(second, address)
    api.synchronize(second)


def test_what_the_stream_frees_can_be_had_behind_it(
    api: ModuleType, simulator: ModuleType, stream: Any
) -> None:
    api.synchronize_device(0)
    info = api.memory_info(0)
    simulator.set_memory_limit(0, info.total - info.free + SIZE)
    for _ in range(50):
        address = api.allocate_async(stream, SIZE)
        api.fill_bytes(stream, address, 1, SIZE)
        api.deallocate_async(stream, address)
    address = api.allocate_async(stream, SIZE)
    with pytest.raises(MemoryError):
        api.allocate_async(stream, SIZE)
    api.deallocate_async(stream, address)
    api.synchronize(stream)
    assert api.memory_info(0).free == SIZE
