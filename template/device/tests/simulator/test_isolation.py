"""The simulator's device memory is separate from host memory."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from simulator_knobs import Knobs


@pytest.fixture(autouse=True)
def needs_the_simulator(simulator: Knobs) -> None:
    pass


@pytest.mark.parametrize("access", ["ctypes.memset(address, 0, 1)", "ctypes.string_at(address, 1)"])
def test_a_host_access_to_device_memory_faults(run_child: Callable[..., Any], access: str) -> None:
    code = f"""
import ctypes, _device
address = _device.allocate(0, 64)
print("reached", flush=True)
{access}
"""
    done = run_child(code)
    assert done.stdout.strip() == "reached"
    assert done.returncode == -signal.SIGSEGV


def test_device_memory_has_no_host_address(api: ModuleType) -> None:
    buffer = api.Buffer(0, 64)
    assert api.host_address(0, buffer.address) is None
    assert not api.properties(0).host_addressable


def test_the_host_address_is_a_setting(run_child: Callable[..., Any]) -> None:
    code = """
import ctypes, _device
assert _device.properties(0).host_addressable
buffer = _device.Buffer(0, 64)
buffer.write(bytes(range(64)))
host = _device.host_address(0, buffer.address + 10)
assert host != buffer.address + 10
assert ctypes.string_at(host, 5) == bytes(range(10, 15))
ctypes.memset(host, 99, 1)
assert buffer.read(10, 1) == bytes([99])
assert _device.host_address(1, buffer.address) is None
assert _device.host_address(0, host) is None
"""
    done = run_child(code, SIMULATOR_HOST_ADDRESS="1")
    assert done.returncode == 0, done.stderr


def test_unused_allocations_take_no_host_memory(run_child: Callable[..., Any]) -> None:
    code = """
import resource, _device
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
address = _device.allocate(0, 3 << 30)
filled = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert filled < 500_000, f"{filled} kB"
"""
    done = run_child(code)
    assert done.returncode == 0, done.stderr


def test_a_host_address_given_as_a_device_address_is_refused(
    api: ModuleType, bare_device: None, stream: Any
) -> None:
    with pytest.raises(api.DeviceError, match="is not an address of a simulated device"):
        api.fill_bytes(stream, 4096, 0, 1)
