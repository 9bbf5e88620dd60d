"""One step of a loss scale's schedule."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.harness import Device
from kernels.support import Case

LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("scale", "tracker", "found", "new_scale", "new_tracker"),
    [
        pytest.param(1024.0, 0, 0.0, 1024.0, 1, id="grows_the_tracker"),
        pytest.param(1024.0, 2, 0.0, 2048.0, 0, id="grows_the_scale"),
        pytest.param(1024.0, 2, 1.0, 256.0, 0, id="backs_off"),
        pytest.param(1024.0, 0, 3.0, 256.0, 0, id="any_number_counts_as_found"),
        pytest.param(LARGEST, 2, 0.0, LARGEST, 0, id="does_not_overflow"),
    ],
)
def test_update_scale(
    device: Device, scale: float, tracker: int, found: float, new_scale: float, new_tracker: int
) -> None:
    case = Case("update_scale", "update_scale", "float32", "contiguous")
    scale_array = device.array("float32", (1,), values=np.asarray([scale]))
    tracker_array = device.array("int32", (1,), values=np.asarray([tracker]))
    found_inf = device.array("float32", (1,), values=np.asarray([found]))

    outputs = [scale_array, tracker_array]
    growth, backoff, interval = 2.0, 0.25, 3
    device.run(case, outputs, *outputs, found_inf, more=[growth, backoff, interval])
    assert scale_array.read()[0] == np.float32(new_scale)
    assert tracker_array.read()[0] == new_tracker
    assert found_inf.unchanged()
