"""Events of the simulator: streams of another device are rejected."""

from __future__ import annotations

from types import ModuleType

import pytest
from making import Make
from simulator_knobs import Knobs


@pytest.fixture(params=[False, True], ids=["untimed", "timed"])
def timing(request: pytest.FixtureRequest, api: ModuleType) -> bool:
    if request.param and not api.properties(0).event_timing:
        pytest.skip("the device cannot time events")
    return bool(request.param)


def test_the_simulator_refuses_to_record_on_another_devices_stream(
    api: ModuleType, simulator: Knobs, second_device: int, make: Make, timing: bool
) -> None:
    with pytest.raises(api.DeviceError) as caught:
        api.record(make.event(0, timing), make.stream(second_device))
    assert caught.value.code is api.ErrorCode.INVALID_ARGUMENT
