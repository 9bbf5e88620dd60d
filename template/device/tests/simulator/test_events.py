"""Events of the simulator: streams of another device are rejected."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from making import Make
from simulator_knobs import Knobs


def test_the_simulator_refuses_to_record_on_another_devices_stream(
    api: ModuleType,
    refuses: Callable[..., None],
    simulator: Knobs,
    second_device: int,
    make: Make,
    timing: bool,
) -> None:
    refuses(api.record, make.event(0, timing), make.stream(second_device))
