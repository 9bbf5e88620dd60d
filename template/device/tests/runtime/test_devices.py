"""Devices: their number, their properties, and errors."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest


def test_at_least_one_device_is_present(api: ModuleType) -> None:
    assert api.device_count() >= 1, "no driver, no device, or device_count is not implemented"


def test_properties_are_filled_in(api: ModuleType) -> None:
    for device in range(api.device_count()):
        properties = api.properties(device)
        assert properties.name
        assert properties.architecture
        assert min(properties.major, properties.minor) >= 0
        assert properties.total_memory == api.memory_info(device).total
        assert properties.highest_priority <= 0 <= properties.lowest_priority
        assert properties.allocation_alignment.bit_count() == 1


def test_a_device_is_not_its_own_peer(api: ModuleType) -> None:
    assert not api.can_access_peer(0, 0)


def test_peer_access_is_known_for_every_pair(api: ModuleType, second_device: int) -> None:
    assert isinstance(api.can_access_peer(0, second_device), bool)


def test_an_error_of_a_call_has_its_own_name_and_number_and_no_origin(api: ModuleType) -> None:
    with pytest.raises(MemoryError) as caught:
        api.allocate(0, 1 << 60)
    error: Any = caught.value
    assert error.device == api.HOST
    assert error.operation is None
    wanted = '"ACME_OUT_OF_MEMORY (-4): 512.00 MiB were requested, 300.00 MiB are free"'
    assert re.match(r"\w+ \(-?\w+\): ", str(error)), (
        f"a message is a name, a number, a colon and words, as in {wanted} (error.h), not {error}"
    )
