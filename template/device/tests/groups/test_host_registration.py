"""Host memory of others that is page-locked while it is registered."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from host_memory import Bytes, address_of, pattern

GROUP = "host_registration"
SIZE = 4 * mmap.PAGESIZE


@pytest.fixture
def host() -> Bytes:
    """Whole pages, which some devices insist on."""
    return np.frombuffer(mmap.mmap(-1, SIZE), np.uint8)


@pytest.fixture
def registered(api: ModuleType, host: Bytes, make_buffer: object) -> Iterator[Bytes]:
    """The same pages, registered during the test."""
    api.register_host(address_of(host), SIZE)
    yield host
    api.synchronize_device(0)
    api.unregister_host(address_of(host))


def test_registered_memory_is_described_as_page_locked(api: ModuleType, host: Bytes) -> None:
    address = address_of(host)
    assert api.describe(api.HOST, address).kind is api.MemoryKind.UNKNOWN
    api.register_host(address, SIZE)
    for place in (address, address + SIZE - 1):
        info = api.describe(api.HOST, place)
        assert info.kind is api.MemoryKind.HOST_PINNED
        assert (info.base, info.bytes, info.device) == (address, SIZE, api.HOST)
    assert api.describe(api.HOST, address + SIZE).kind is api.MemoryKind.UNKNOWN
    api.unregister_host(address)
    assert api.describe(api.HOST, address).kind is api.MemoryKind.UNKNOWN


def test_copies_with_registered_memory_are_asynchronous(
    api: ModuleType,
    stream: Any,
    gate: Any,
    make_buffer: Callable[..., Any],
    registered: Bytes,
) -> None:
    buffer = make_buffer(SIZE)
    registered[:] = pattern(SIZE)
    gate.hold(stream)
    api.copy_bytes(stream, (buffer.address, 0), (address_of(registered), api.HOST), SIZE)
    assert not api.is_idle(stream)
    registered[:] = pattern(SIZE, seed=1)  # the copy reads what is there when it runs
    gate.open()
    api.synchronize(stream)
    assert (np.frombuffer(buffer.read(), np.uint8) == pattern(SIZE, seed=1)).all()


def test_memory_is_registered_once(api: ModuleType, registered: Bytes) -> None:
    with pytest.raises(api.DeviceError) as caught:
        api.register_host(address_of(registered) + mmap.PAGESIZE, mmap.PAGESIZE)
    assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT
