"""Devices: counting, describing, refusing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from simulator_knobs import Knobs


def test_there_is_a_device(api: ModuleType) -> None:
    assert api.device_count() >= 1, "no driver, no device, or device_count is not written yet"


def test_properties_are_filled_in(api: ModuleType) -> None:
    for device in range(api.device_count()):
        properties = api.properties(device)
        assert properties.name
        assert properties.architecture
        assert min(properties.major, properties.minor) >= 0
        assert properties.total_memory == api.memory_info(device).total
        assert properties.highest_priority <= 0 <= properties.lowest_priority
        assert properties.allocation_alignment.bit_count() == 1


def test_the_simulator_refuses_an_index_out_of_range(api: ModuleType, simulator: Knobs) -> None:
    for device in (-1, api.device_count()):
        with pytest.raises(api.DeviceError) as caught:
            api.properties(device)
        assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT


def test_a_device_is_not_its_own_peer(api: ModuleType) -> None:
    assert not api.can_access_peer(0, 0)


def test_peer_access_is_answered_for_every_pair(api: ModuleType, second_device: int) -> None:
    assert isinstance(api.can_access_peer(0, second_device), bool)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_simulator_has_as_many_devices_as_it_is_told(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], count: int
) -> None:
    environment = {f"{api.ENV_PREFIX}_SIMULATOR_DEVICES": str(count)}
    done = run_child("import _device; print(_device.device_count())", **environment)
    assert done.stdout.strip() == str(count), done.stderr


@pytest.mark.parametrize("value", ["many", "-1", "65", "1.5", "99999999999999999999"])
def test_the_simulator_names_a_device_count_that_it_cannot_have(
    api: ModuleType, simulator: Knobs, run_child: Callable[..., Any], value: str
) -> None:
    environment = {f"{api.ENV_PREFIX}_SIMULATOR_DEVICES": value}
    done = run_child("import _device; print(_device.device_count())", **environment)
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
    ):
        try:
            call()
        except _device.DeviceError as error:
            refused += "forked" in str(error)
    _device.deallocate(0, address)
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
"""
    done = run_child(code)
    assert done.returncode == 0, done.stderr


def test_an_error_of_a_call_has_no_origin(api: ModuleType) -> None:
    with pytest.raises(MemoryError) as caught:
        api.allocate(0, 1 << 60)
    error: Any = caught.value
    assert error.device == api.HOST
    assert error.operation is None


def test_a_message_begins_with_the_errors_own_name_and_number(api: ModuleType) -> None:
    with pytest.raises(MemoryError) as caught:
        api.allocate(0, 1 << 60)
    wanted = '"ACME_OUT_OF_MEMORY (-4): 512.00 MiB were asked for, 300.00 MiB are free"'
    assert re.match(r"\w+ \(-?\w+\): ", str(caught.value)), (
        f"a message is a name, a number, a colon and words, as in {wanted} (error.h), not {caught.value}"
    )
