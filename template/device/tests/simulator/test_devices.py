"""Devices of the simulator: their number, and forks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from simulator_knobs import Knobs

COUNT = "import _device; print(_device.device_count())"


def test_the_simulator_refuses_an_index_out_of_range(
    api: ModuleType, refuses: Callable[..., None], simulator: Knobs
) -> None:
    for device in (-1, api.device_count()):
        refuses(api.properties, device)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_number_of_simulated_devices_can_be_set(
    simulator: Knobs, run_child: Callable[..., Any], count: int
) -> None:
    done = run_child(COUNT, SIMULATOR_DEVICES=str(count))
    assert done.stdout.strip() == str(count), done.stderr


@pytest.mark.parametrize("value", ["many", "-1", "65", "1.5", "99999999999999999999"])
def test_a_wrong_number_of_simulated_devices_is_named(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], value: str
) -> None:
    done = run_child(COUNT, SIMULATOR_DEVICES=value)
    assert done.stdout.strip() == "2"
    assert f"{api.ENV_PREFIX}_SIMULATOR_DEVICES={value} is not a number" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason=f"no fork on {sys.platform}")
def test_the_simulator_refuses_work_in_a_fork_of_a_process_that_used_it(
    simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    code = """
import os, _device
stream = _device.default_stream(0)
address = _device.allocate(0, 64)
child = os.fork()
if child == 0:
    refused = 0
    for call in (
        lambda: _device.allocate(0, 64),
        lambda: _device.synchronize(stream),
        lambda: _device.fill_bytes(stream, address, 0, 64),
        lambda: _device.create_stream(0, 0),
        lambda: _device.acknowledge_stream(stream),
        lambda: _device.acknowledge_device(0),
        lambda: _device.fail_stream(stream, _device.ErrorCode.INTERNAL, ""),
    ):
        try:
            call()
        except _device.DeviceError as error:
            refused += "forked" in str(error)
    _device.deallocate(0, address)
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    done = run_child(code)
    assert done.returncode == 0, done.stderr
