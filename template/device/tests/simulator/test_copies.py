"""Copies on the simulator: addresses of another device are rejected."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from host_memory import address_of, pattern
from simulator_knobs import Knobs


def test_an_address_of_another_device_is_refused(
    api: ModuleType, simulator: Knobs, bare_device: None, second_device: int, stream: Any
) -> None:
    buffer = api.Buffer(0, 64)
    host = pattern(64)
    with pytest.raises(api.DeviceError, match="is an address of device 0, not of device 1"):
        api.copy_bytes(stream, (buffer.address, 1), (address_of(host), api.HOST), 64)
    with pytest.raises(api.DeviceError, match="is an address of the host, not of device 0"):
        api.copy_bytes(stream, (buffer.address, 0), (address_of(host), 0), 64)
