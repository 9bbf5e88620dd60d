"""Memory: allocating, giving back, describing, running out."""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from host_memory import at, pattern
from making import Make
from simulator_knobs import Knobs

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_is_given_back_meanwhile() -> None:
    """Buffers that earlier tests left in cycles, such as tracebacks, are collected first."""
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


def test_memory_of_one_device_is_not_taken_from_another(
    api: ModuleType, second_device: int
) -> None:
    before = api.memory_info(second_device).free
    address = api.allocate(0, 8 * MIB)
    assert api.memory_info(second_device).free == before
    api.deallocate(0, address)


def test_pieces_given_back_in_any_order_leave_nothing_behind(api: ModuleType) -> None:
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


def test_describe_knows_every_byte_of_an_allocation(api: ModuleType) -> None:
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


def test_describe_knows_every_byte_of_pinned_memory(api: ModuleType, make: Make) -> None:
    address = make.pinned(1000)
    for offset in (0, 1, 999):
        info = api.describe(api.HOST, address + offset)
        assert info.kind is api.MemoryKind.HOST_PINNED
        assert info.device == api.HOST
        assert info.base == address


def test_describe_does_not_know_other_host_memory(api: ModuleType) -> None:
    info = api.describe(api.HOST, pattern(64).ctypes.data)
    assert info.kind is api.MemoryKind.UNKNOWN
    assert info.device == api.HOST
    assert api.describe(api.HOST, 0).kind is api.MemoryKind.UNKNOWN


def test_an_address_of_one_device_says_nothing_of_the_host_and_of_others(
    api: ModuleType, make: Make
) -> None:
    address = api.allocate(0, 64)
    others = [api.describe(device, address) for device in range(1, api.device_count())]
    info = api.describe(api.HOST, address)
    api.deallocate(0, address)
    assert info.kind is not api.MemoryKind.DEVICE
    assert info.device == api.HOST
    # Another device may use the same address, for memory of its own.
    assert all(
        info.kind is api.MemoryKind.UNKNOWN or info.device == device
        for device, info in enumerate(others, 1)
    )
    assert api.describe(0, make.pinned(64)).kind is not api.MemoryKind.HOST_PINNED


def test_pinned_memory_is_ordinary_memory_to_the_host(make: Make) -> None:
    memory = at(make.pinned(4096), 4096)
    expected = pattern(4096)
    memory[:] = expected
    assert (memory == expected).all()


def test_running_out_of_memory_is_a_memory_error_with_figures(
    api: ModuleType, simulator: Knobs
) -> None:
    used = api.memory_info(0).total - api.memory_info(0).free
    simulator.set_memory_limit(0, used + 4 * MIB)
    first = api.allocate(0, 3 * MIB)
    with pytest.raises(MemoryError, match=r"device 0 cannot allocate 2\.00 MiB: .* of .* in use"):
        api.allocate(0, 2 * MIB)
    second = api.allocate(0, MIB)
    assert api.memory_info(0).free == 0
    api.deallocate(0, first)
    api.deallocate(0, second)
    assert api.memory_info(0).free == 4 * MIB


def test_more_memory_than_there_is_is_refused(api: ModuleType) -> None:
    total = api.properties(0).total_memory
    for size in (total + 1, 1 << 60, (1 << 64) - 1):
        with pytest.raises(MemoryError):
            api.allocate(0, size)


def test_a_limit_below_what_is_in_use_leaves_nothing_free(
    api: ModuleType, simulator: Knobs
) -> None:
    address = api.allocate(0, 2 * MIB)
    simulator.set_memory_limit(0, MIB)
    assert api.memory_info(0).free == 0
    with pytest.raises(MemoryError):
        api.allocate(0, 1)
    api.deallocate(0, address)


def test_the_environment_limits_the_simulators_memory(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    environment = {f"{api.ENV_PREFIX}_SIMULATOR_MEMORY": str(64 * MIB)}
    done = run_child("import _device; print(_device.memory_info(1).total)", **environment)
    assert done.stdout.strip() == str(64 * MIB), done.stderr


@pytest.mark.parametrize(
    "value",
    ["4 GiB", "0", "-1", "1e9", "0x10", "4611686018427387904", "18446744073709551615", "9" * 30],
)
def test_a_limit_that_cannot_be_had_is_refused(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], value: str
) -> None:
    variable = f"{api.ENV_PREFIX}_SIMULATOR_MEMORY"
    done = run_child("import _device; _device.memory_info(0)", **{variable: value})
    last = done.stderr.strip().splitlines()[-1]
    assert f"{variable}={value} is not a number of bytes from 1 to " in last


@pytest.mark.parametrize("devices", [1, 2, 64])
def test_the_largest_limit_can_be_had(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], devices: int
) -> None:
    code = """
import _device
stream, last = _device.default_stream(0), _device.device_count() - 1
buffer = _device.Buffer(last, 4)
buffer.write(b"\\1\\2\\3\\4")
assert buffer.read() == b"\\1\\2\\3\\4"
"""
    environment = {
        f"{api.ENV_PREFIX}_SIMULATOR_MEMORY": str(2**44 // devices),
        f"{api.ENV_PREFIX}_SIMULATOR_DEVICES": str(devices),
    }
    done = run_child(code, **environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["SIMULATOR_HOST_ADDRESS", "LAUNCH_BLOCKING"])
@pytest.mark.parametrize("value", ["yes", "2", "-1", "false"])
def test_a_switch_is_0_or_1(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], name: str, value: str
) -> None:
    variable = f"{api.ENV_PREFIX}_{name}"
    done = run_child("import _device; _device.memory_info(0)", **{variable: value})
    assert done.stderr.strip().endswith(f"{variable}={value} is not 0 or 1")


@pytest.mark.parametrize("value", ["yes", "-1", "1.5"])
def test_a_seed_is_a_whole_number(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], value: str
) -> None:
    variable = f"{api.ENV_PREFIX}_SIMULATOR_SEED"
    done = run_child("import _device; _device.memory_info(0)", **{variable: value})
    assert done.stderr.strip().endswith(f"{variable}={value} is not a whole number from 0 on")


def test_an_empty_variable_is_not_set(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    names = ("MEMORY", "DEVICES", "HOST_ADDRESS", "SEED")
    environment = {f"{api.ENV_PREFIX}_SIMULATOR_{name}": "" for name in names}
    code = "import _device; print(_device.device_count(), _device.memory_info(1).total)"
    done = run_child(code, **environment)
    assert done.stdout.split() == ["2", str(4 << 30)], done.stderr


def test_giving_back_what_was_never_allocated_ends_the_process(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    code = "import _device; a = _device.allocate(0, 64); _device.deallocate(0, a + 8)"
    done = run_child(code, **{f"{api.ENV_PREFIX}_DEVICE_LAYERS": ""})
    assert done.returncode < 0
    assert "no allocation begins" in done.stderr


def test_memory_given_back_does_not_stay_resident(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    code = """
import _device
from pathlib import Path
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
stream = _device.default_stream(0)
address = _device.allocate(0, 256 << 20)
_device.fill_bytes(stream, address, 1, 256 << 20)
_device.synchronize(stream)
used = resident()
_device.deallocate(0, address)
assert used - resident() >= 250 << 20, (used, resident())
"""
    done = run_child(code)
    assert done.returncode == 0, done.stderr
