"""Memory of the simulator: its limit, its settings, and errors of wrong calls."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from simulator_knobs import Knobs

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_is_given_back_meanwhile() -> None:
    """Frees buffers that earlier tests left in cycles, such as tracebacks."""
    gc.collect()


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
    simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    code = "import _device; print(_device.memory_info(1).total)"
    done = run_child(code, SIMULATOR_MEMORY=str(64 * MIB))
    assert done.stdout.strip() == str(64 * MIB), done.stderr


@pytest.mark.parametrize("devices", [1, 2, 64])
def test_the_largest_memory_limit_works(
    simulator: Knobs, run_child: Callable[..., Any], devices: int
) -> None:
    code = """
import _device
stream, last = _device.default_stream(0), _device.device_count() - 1
buffer = _device.Buffer(last, 4)
buffer.write(b"\\1\\2\\3\\4")
assert buffer.read() == b"\\1\\2\\3\\4"
"""
    memory = str(2**44 // devices)
    done = run_child(code, SIMULATOR_MEMORY=memory, SIMULATOR_DEVICES=str(devices))
    assert done.returncode == 0, done.stderr


# For each variable: the end of the error message, and invalid values.
REFUSED = {
    "SIMULATOR_MEMORY": (
        r"a number of bytes from 1 to \d+",
        ["4 GiB", "0", "-1", "1e9", "0x10", str(2**62), str(2**64 - 1), "9" * 30],
    ),
    "SIMULATOR_HOST_ADDRESS": ("0 or 1", ["yes", "2", "-1", "false"]),
    "LAUNCH_BLOCKING": ("0 or 1", ["yes", "2", "-1", "false"]),
    "SIMULATOR_SEED": ("a whole number from 0 on", ["yes", "-1", "1.5"]),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (_, values) in REFUSED.items() for value in values]
)
def test_a_value_out_of_range_is_refused(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], name: str, value: str
) -> None:
    done = run_child("import _device; _device.memory_info(0)", **{name: value})
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(rf"{api.ENV_PREFIX}_{name}={value} is not {REFUSED[name][0]}$", last)


def test_an_empty_variable_is_not_set(simulator: Knobs, run_child: Callable[..., Any]) -> None:
    names = ("MEMORY", "DEVICES", "HOST_ADDRESS", "SEED")
    code = "import _device; print(_device.device_count(), _device.memory_info(1).total)"
    done = run_child(code, **{f"SIMULATOR_{name}": "" for name in names})
    assert done.stdout.split() == ["2", str(4 << 30)], done.stderr


def test_freeing_an_inner_address_ends_the_process(
    simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    code = "import _device; a = _device.allocate(0, 64); _device.deallocate(0, a + 8)"
    done = run_child(code, DEVICE_LAYERS="")
    assert done.returncode < 0
    assert "no allocation begins" in done.stderr


def test_freed_memory_is_not_resident(simulator: Knobs, run_child: Callable[..., Any]) -> None:
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
