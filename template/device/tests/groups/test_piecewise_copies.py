"""Copies of rows, and of many pieces in one call."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from host_memory import address_of, at, pattern
from making import Make

GROUP = "copies"

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# The number of rows, their width, and the pitches of both sides.
SHAPES = [(1, 1, 1, 1), (5, 3, 7, 3), (4, 64, 64, 96), (33, 1000, 1024, 1001), (2, 7, 4096, 11)]


def read(buffer: Any) -> Bytes:
    return np.frombuffer(buffer.read(), dtype=np.uint8)


def rows(memory: Bytes, pitch: int, width: int, height: int) -> Bytes:
    """The rows in the memory of one side, as a view."""
    return np.lib.stride_tricks.as_strided(memory, (height, width), (pitch, 1))


def extent(pitch: int, width: int, height: int) -> int:
    return (height - 1) * pitch + width


@pytest.mark.parametrize(("height", "width", "to_pitch", "from_pitch"), SHAPES)
@pytest.mark.parametrize("pinned", [False, True])
def test_rows_are_copied_to_the_device_without_the_gaps(
    api: ModuleType,
    stream: Any,
    make: Make,
    height: int,
    width: int,
    to_pitch: int,
    from_pitch: int,
    pinned: bool,
) -> None:
    source = pattern(extent(from_pitch, width, height))
    if pinned:
        kept = at(make.pinned(source.size), source.size)
        kept[:] = source
        source = kept
    target = api.Buffer(0, extent(to_pitch, width, height))
    expected = pattern(extent(to_pitch, width, height), seed=1)
    target.write(expected)
    place = (address_of(source), api.HOST)
    api.copy_2d(stream, (target.address, 0), to_pitch, place, from_pitch, width, height)
    if pinned:
        api.synchronize(stream)
    expected = expected.copy()
    rows(expected, to_pitch, width, height)[:] = rows(source, from_pitch, width, height)
    assert (read(target) == expected).all()
    assert target.guards_intact()


@pytest.mark.parametrize(("height", "width", "to_pitch", "from_pitch"), SHAPES)
def test_rows_are_copied_from_the_device(
    api: ModuleType, stream: Any, height: int, width: int, to_pitch: int, from_pitch: int
) -> None:
    held = pattern(extent(from_pitch, width, height))
    source = api.Buffer(0, held.size)
    source.write(held)
    target = pattern(extent(to_pitch, width, height), seed=1)
    expected = target.copy()
    place = (address_of(target), api.HOST)
    api.copy_2d(stream, place, to_pitch, (source.address, 0), from_pitch, width, height)
    rows(expected, to_pitch, width, height)[:] = rows(held, from_pitch, width, height)
    assert (target == expected).all()


def test_rows_are_copied_within_a_device(api: ModuleType, stream: Any) -> None:
    source, target = api.Buffer(0, 40), api.Buffer(0, 40)
    source.write(pattern(40))
    target.write(pattern(40, seed=1))
    api.copy_2d(stream, (target.address, 0), 10, (source.address, 0), 8, 6, 4)
    api.synchronize(stream)
    expected = pattern(40, seed=1).copy()
    rows(expected, 10, 6, 4)[:] = rows(pattern(40), 8, 6, 4)
    assert (read(target) == expected).all()


def test_rows_are_copied_in_the_order_of_the_stream(
    api: ModuleType, stream: Any, make: Make
) -> None:
    buffer = api.Buffer(0, 1 << 20)
    pinned = make.pinned(1 << 20)
    seen = at(pinned, 1 << 20)
    for value in range(1, 20):
        api.fill_bytes(stream, buffer.address, value, 1 << 20)
    api.copy_2d(stream, (pinned, api.HOST), 1 << 10, (buffer.address, 0), 1 << 10, 1 << 9, 1 << 10)
    api.fill_bytes(stream, buffer.address, 99, 1 << 20)
    api.synchronize(stream)
    assert (rows(seen, 1 << 10, 1 << 9, 1 << 10) == 19).all()


@pytest.mark.parametrize("pinned", [False, True])
def test_a_batch_goes_both_ways(api: ModuleType, stream: Any, make: Make, pinned: bool) -> None:
    first, second = api.Buffer(0, 64), api.Buffer(0, 64)
    first.write(pattern(64))
    second.write(pattern(64, seed=1))
    host = at(make.pinned(128), 128) if pinned else np.zeros(128, dtype=np.uint8)
    host[:] = pattern(128, seed=2)
    sent = host[:10].copy()
    api.copy_batch(
        stream,
        [
            ((first.address + 3, 0), (address_of(host), api.HOST), 10),
            ((address_of(host) + 64, api.HOST), (second.address, 0), 64),
            ((first.address + 32, 0), (second.address, 0), 8),
        ],
    )
    if pinned:
        api.synchronize(stream)
    expected = pattern(64).copy()
    expected[3:13] = sent
    expected[32:40] = pattern(64, seed=1)[:8]
    assert (read(first) == expected).all()
    assert (host[64:] == pattern(64, seed=1)).all()


def test_the_pieces_of_a_batch_can_be_freed_after_the_call(
    api: ModuleType, stream: Any, make: Make
) -> None:
    buffer = api.Buffer(0, 1 << 16)
    pinned = make.pinned(1 << 16)
    at(pinned, 1 << 16)[:] = pattern(1 << 16)
    for start in range(0, 1 << 16, 1 << 12):
        pieces = [
            ((buffer.address + place, 0), (pinned + place, api.HOST), 1 << 10)
            for place in range(start, start + (1 << 12), 1 << 10)
        ]
        api.copy_batch(stream, pieces)
        del pieces
    api.synchronize(stream)
    assert (read(buffer) == pattern(1 << 16)).all()


def test_an_injected_failure_is_that_of_a_copy(
    api: ModuleType, faults: ModuleType, make: Make
) -> None:
    stream = make.stream()
    buffer = api.Buffer(0, 64)
    host = np.zeros(64, dtype=np.uint8)
    faults.inject("copy")
    with pytest.raises(api.DeviceError, match="injected failure of this copy"):
        api.copy_2d(stream, (buffer.address, 0), 8, (address_of(host), api.HOST), 8, 8, 8)


@pytest.mark.parametrize(
    ("pitch", "width", "height"),
    [(4, 8, 2), (8, 8, 1 << 20), (8, 0, 1), (8, 8, 0)],
)
def test_the_layer_validate_refuses(
    api: ModuleType, pitch: int, width: int, height: int, validated: None, stream: Any
) -> None:
    buffer = api.Buffer(0, 64)
    host = np.zeros(256, dtype=np.uint8)
    place = (address_of(host), api.HOST)
    with pytest.raises(api.DeviceError, match="contract of copy_2d"):
        api.copy_2d(stream, (buffer.address, 0), pitch, place, 16, width, height)
