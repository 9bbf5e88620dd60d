"""Copies and fills in every direction, and the time of their completion."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from host_memory import address_of, at, pattern
from making import Make

SIZES = [1, 7, 4096, (1 << 20) + 3]


def read(buffer: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(buffer.read(), dtype=np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_bytes_are_equal_after_a_copy_there_and_back(api: ModuleType, size: int) -> None:
    buffer = api.Buffer(0, size)
    expected = pattern(size)
    buffer.write(expected)
    assert (read(buffer) == expected).all()
    assert buffer.guards_intact()


@pytest.mark.parametrize("size", SIZES)
def test_bytes_are_equal_after_a_local_copy(api: ModuleType, stream: Any, size: int) -> None:
    source, target = api.Buffer(0, size), api.Buffer(0, size)
    expected = pattern(size)
    source.write(expected)
    api.copy_bytes(stream, (target.address, 0), (source.address, 0), size)
    api.synchronize(stream)
    assert (read(target) == expected).all()
    assert target.guards_intact()


@pytest.mark.parametrize("on_source", [True, False])
def test_bytes_are_equal_after_a_copy_between_devices(
    api: ModuleType, second_device: int, make: Make, on_source: bool
) -> None:
    source, target = api.Buffer(0, 4096), api.Buffer(second_device, 4096)
    expected = pattern(4096)
    source.write(expected)
    stream = make.stream(0 if on_source else second_device)
    api.copy_bytes(stream, (target.address, second_device), (source.address, 0), 4096)
    api.synchronize(stream)
    assert (read(target) == expected).all()
    assert target.guards_intact()


def test_a_copy_writes_only_its_bytes(api: ModuleType, stream: Any) -> None:
    buffer = api.Buffer(0, 100)
    before = pattern(100)
    buffer.write(before)
    source = pattern(10, seed=1)
    api.copy_bytes(stream, (buffer.address + 33, 0), (address_of(source), api.HOST), 10)
    expected = before.copy()
    expected[33:43] = source
    assert (read(buffer) == expected).all()


def test_a_copy_from_pageable_memory_is_done_on_return(
    api: ModuleType, make: Make, stream: Any
) -> None:
    buffer = make.buffer(4096)
    source = pattern(4096)
    expected = source.copy()
    api.copy_bytes(stream, (buffer.address, 0), (address_of(source), api.HOST), source.size)
    source[:] = 0
    assert (read(buffer) == expected).all()


def test_a_copy_to_pageable_memory_is_done_on_return_behind_pending_work(
    api: ModuleType, make: Make, stream: Any
) -> None:
    size = 8 << 20
    buffer = make.buffer(size)
    for value in range(1, 5):
        api.fill_bytes(stream, buffer.address, value, size)
    target = np.zeros(size, dtype=np.uint8)
    api.copy_bytes(stream, (address_of(target), api.HOST), (buffer.address, 0), size)
    assert (target == 4).all()


def test_a_copy_from_pinned_memory_runs_in_stream_order(
    api: ModuleType, make: Make, stream: Any, gate: Any
) -> None:
    address = make.pinned(64)
    source = at(address, 64)
    source[:] = 1
    buffer = make.buffer(64)
    gate.hold(stream)
    api.copy_bytes(
        stream, (buffer.address, 0), (address, api.HOST), 64
    )  # must not wait for the gate
    source[:] = 2
    gate.open()
    api.synchronize(stream)
    assert set(buffer.read()) == {2}


def test_a_copy_to_pinned_memory_runs_in_stream_order(
    api: ModuleType, make: Make, stream: Any, gate: Any
) -> None:
    address = make.pinned(64)
    target = at(address, 64)
    target[:] = 0
    buffer = make.buffer(64)
    buffer.write(bytes([7]) * 64)
    gate.hold(stream)
    api.copy_bytes(stream, (address, api.HOST), (buffer.address, 0), 64)
    assert set(target) == {0}
    gate.open()
    api.synchronize(stream)
    assert set(target) == {7}


def test_pinned_copies_can_begin_at_any_byte(api: ModuleType, make: Make, stream: Any) -> None:
    address = make.pinned(4096)
    expected = pattern(1000)
    at(address, 4096)[5:1005] = expected
    buffer = api.Buffer(0, 1000)
    api.copy_bytes(stream, (buffer.address, 0), (address + 5, api.HOST), 1000)
    api.synchronize(stream)
    assert (read(buffer) == expected).all()


@pytest.mark.parametrize("size", SIZES)
def test_a_fill_sets_every_byte_and_no_other(api: ModuleType, stream: Any, size: int) -> None:
    buffer = api.Buffer(0, size + 2)
    buffer.write(bytes([1]) * (size + 2))
    api.fill_bytes(stream, buffer.address + 1, 0xEE, size)
    api.synchronize(stream)
    result = buffer.read()
    assert result == bytes([1]) + bytes([0xEE]) * size + bytes([1])
    assert buffer.guards_intact()


def test_copies_and_fills_of_a_stream_run_in_order(
    api: ModuleType, make: Make, stream: Any
) -> None:
    first, second = make.buffer(1024), make.buffer(1024)
    for value in range(1, 200):
        api.fill_bytes(stream, first.address, value, 1024)
        api.copy_bytes(stream, (second.address + value, 0), (first.address, 0), 1)
    api.synchronize(stream)
    assert second.read(1, 199) == bytes(range(1, 200))


@pytest.mark.parametrize("pinned", [False, True], ids=["device", "host"])
def test_memory_can_be_freed_when_a_query_reports_done(
    api: ModuleType, make: Make, stream: Any, pinned: bool
) -> None:
    buffer = make.buffer(SIZES[-1])
    for _ in range(20):
        address = api.allocate_host(SIZES[-1]) if pinned else api.allocate(0, SIZES[-1])
        place = (address, api.HOST if pinned else 0)
        api.fill_bytes(stream, buffer.address, 7, SIZES[-1])
        api.copy_bytes(stream, place, (buffer.address, 0), SIZES[-1])
        while not api.is_idle(stream):
            pass
        if pinned:
            assert (at(address, SIZES[-1]) == 7).all()
            api.deallocate_host(address)
        else:
            api.deallocate(0, address)
        assert api.describe(place[1], address).kind is api.MemoryKind.UNKNOWN
    api.synchronize(stream)
