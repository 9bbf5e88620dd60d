"""Memory of one process that another process uses."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from groups.other_process import Other, RemoteError, refused
from groups.shared_numbers import COUNT, SIZE, add, read, write
from making import Make
from simulator_knobs import Knobs

GROUP = "sharing"


def test_both_processes_read_and_write_the_same_bytes(
    api: ModuleType, other: Other, numbers: int
) -> None:
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, numbers))
    assert other.ask("read(address)") == COUNT.tolist()
    write(api, numbers + 400, COUNT[:10] + 7)
    assert other.ask("read(address + 400, 10)") == (COUNT[:10] + 7).tolist()
    other.run("write(address + 2000, [5] * 10)")
    assert (read(api, numbers + 2000, 10) == 5).all()
    other.run("api.close_memory(0, address)")
    assert (read(api, numbers + 2000, 10) == 5).all()


def test_every_part_of_a_large_allocation_is_shared(
    api: ModuleType, other: Other, make_numbers: Callable[..., int]
) -> None:
    size = (64 << 20) + 4096
    before, address, after = (make_numbers(size=some) for some in (12, size, 8))
    values = np.arange(size // 4, dtype=np.int32)
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, address))
    for number in range(0, size // 4, 1_000_003):
        assert other.ask("read(address + offset, 2)", offset=4 * number) == [number, number + 1]
        other.run("write(address + offset, [-1, -2])", offset=4 * number)
        values[number : number + 2] = [-1, -2]
    assert (read(api, address, size // 4) == values).all()
    assert read(api, before, 3).tolist() == [0, 1, 2]
    assert read(api, after, 2).tolist() == [0, 1]


def test_neighbouring_allocations_are_not_shared(
    api: ModuleType, other: Other, make_numbers: Callable[..., int]
) -> None:
    addresses = [make_numbers(size=64) for _ in range(20)]
    handles = [api.export_memory(0, address) for address in addresses[::2]]
    other.run("opened = [api.open_memory(0, handle) for handle in handles]", handles=handles)
    other.run("for address in opened: api.fill_bytes(api.default_stream(0), address, 255, 64)")
    other.run("api.synchronize(0)")
    for place, address in enumerate(addresses):
        assert read(api, address, 16).tolist() == ([-1] * 16 if place % 2 == 0 else [*range(16)])


def test_kernels_of_the_other_process_use_the_memory(
    api: ModuleType, other: Other, numbers: int, stream: Any
) -> None:
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, numbers))
    other.run("stream = api.create_stream(0, 0)")
    for step in range(1, 4):
        add(api, stream, numbers, 1)
        api.synchronize(stream)
        other.run("add(stream, address, 10); api.synchronize(stream)")
        assert (read(api, numbers) == COUNT + 11 * step).all()


def test_memory_is_exported_while_kernels_run_on_it(
    api: ModuleType, other: Other, make: Make
) -> None:
    streams = [make.stream(), make.stream()]
    buffers = [api.allocate(0, SIZE) for _ in streams]
    for buffer in buffers:
        write(api, buffer, COUNT)
    for round in range(200):
        for stream, buffer in zip(streams, buffers, strict=True):
            add(api, stream, buffer, 1)
        if round == 100:
            handles = [api.export_memory(0, buffer) for buffer in buffers]
    api.synchronize(0)
    for buffer, handle in zip(buffers, handles, strict=True):
        assert (read(api, buffer) == COUNT + 200).all()
        code = "read(api.open_memory(0, handle))"
        assert other.ask(code, handle=handle) == (COUNT + 200).tolist()
        api.deallocate(0, buffer)


def test_memory_is_exported_while_a_stream_waits_for_the_host(
    api: ModuleType, other: Other, numbers: int, stream: Any, gate: Any
) -> None:
    gate.hold(stream)
    gate.wait_until_reached()
    add(api, stream, numbers, 1)
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, numbers))
    assert other.ask("read(address)") == COUNT.tolist()
    gate.open()
    api.synchronize(stream)
    assert other.ask("read(address)") == (COUNT + 1).tolist()


def test_memory_is_closed_with_the_last_close(api: ModuleType, other: Other, numbers: int) -> None:
    handle = api.export_memory(0, numbers)
    assert api.export_memory(0, numbers) == handle
    other.run("address = api.open_memory(0, handle)", handle=handle)
    assert other.ask("api.open_memory(0, handle) == address")
    other.run("api.close_memory(0, address)")
    assert other.ask("read(address)") == COUNT.tolist()
    other.run("api.close_memory(0, address)")
    assert other.ask("api.describe(0, address).kind.name") == "UNKNOWN"
    with pytest.raises(RemoteError, match="was given back"):
        other.ask("read(address)")
    assert other.ask("read(api.open_memory(0, handle))") == COUNT.tolist()


def test_opened_memory_does_not_change_free_memory(
    api: ModuleType, other: Other, numbers: int
) -> None:
    free = other.ask("api.memory_info(0).free")
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, numbers))
    other.run(f"info = api.describe(0, address + {SIZE - 1})")
    mine = api.describe(0, numbers)
    assert other.ask("(info.kind.name, info.device)") == ["DEVICE", 0]
    assert other.ask("info.base == address")
    assert other.ask("info.bytes") == mine.bytes
    assert other.ask("api.memory_info(0).free") == free
    other.run("api.close_memory(0, address)")
    assert other.ask("api.memory_info(0).free") == free


def test_exporting_does_not_change_free_memory(api: ModuleType, numbers: int) -> None:
    before, info = api.memory_info(0).free, api.describe(0, numbers)
    api.export_memory(0, numbers)
    assert api.memory_info(0).free == before
    after = api.describe(0, numbers)
    assert (after.base, after.bytes) == (info.base, info.bytes)
    assert (read(api, numbers) == COUNT).all()


def test_the_host_cannot_access_opened_memory(
    api: ModuleType, simulator: Knobs, other: Other, numbers: int
) -> None:
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, numbers))
    assert other.ask("api.host_address(0, address)") is None
    with pytest.raises(AssertionError):
        other.run("import ctypes; ctypes.string_at(address, 1)")
    assert other.process.wait(timeout=60) == -signal.SIGSEGV


def test_memory_freed_by_its_owner_stays_readable(
    api: ModuleType, simulator: Knobs, other: Other
) -> None:
    address = api.allocate(0, SIZE)
    write(api, address, COUNT)
    handle = api.export_memory(0, address)
    other.run("address = api.open_memory(0, handle)", handle=handle)
    api.deallocate(0, address)
    again = api.allocate(0, SIZE)
    assert again == address
    write(api, again, COUNT * 0)
    assert other.ask("read(address)") == COUNT.tolist()
    other.run("write(address, [3] * 1000)")
    assert (read(api, again) == 0).all()
    fresh = api.export_memory(0, again)
    assert other.ask("api.open_memory(0, fresh) != address", fresh=fresh)
    api.deallocate(0, again)


def test_opened_memory_outlives_its_process(
    api: ModuleType, simulator: Knobs, start_other: Callable[..., Other], other: Other
) -> None:
    owner = start_other()
    owner.run("address = api.allocate(0, 4000); write(address, range(1000))")
    handle = owner.ask("api.export_memory(0, address)")
    address = api.open_memory(0, handle)
    owner.close()
    assert (read(api, address) == COUNT).all()
    assert api.open_memory(0, handle) == address
    with refused(api, "the handle is stale"):
        other.ask("api.open_memory(0, handle)", handle=handle)
    api.close_memory(0, address)
    api.close_memory(0, address)
    with refused(api, "the handle is stale"):
        api.open_memory(0, handle)


def test_memory_of_the_second_device_is_shared(
    api: ModuleType, other: Other, second_device: int, make_numbers: Callable[..., int]
) -> None:
    address = make_numbers(second_device)
    handle = api.export_memory(second_device, address)
    code = "address = api.open_memory(1, handle); write(address, [4] * 10, 1)"
    other.run(code, handle=handle)
    assert (read(api, address, 10, second_device) == 4).all()
    with refused(api, "is of device 1: it cannot be opened on device 0"):
        other.ask("api.open_memory(0, handle)")
