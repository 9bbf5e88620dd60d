"""out[i] = start + i * step"""

from __future__ import annotations

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import Device
from kernels.support import Case

PLACES = [layouts.contiguous, layouts.offset, layouts.stepped]
INTEGER_STEPS = [(0, 1), (7, -3), (-5, 2)]
STEPS = [(0.0, 1.0), (-3.5, 0.25), (0.1, 0.3), (1000.0, -1.7)]


def run(
    device: Device, dtype: str, size: int, place: layouts.Placer, start: float, step: float
) -> None:
    case = Case("sequence", "sequence", dtype, place.__name__)
    out = device.array(dtype, (size,), place)
    device.run(case, [out], out, start, step)
    expected = start + np.arange(size) * step
    # If the device computes in the type itself, both terms are rounded before they are added.
    terms = abs(start) + np.arange(size) * abs(step)
    device.assert_close(case, out, expected, 0.0 if device.float64_arithmetic else 2 * terms)


@pytest.mark.parametrize("size", [1, 33, 2049])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("start", "step"), INTEGER_STEPS)
@pytest.mark.parametrize("dtype", oracle.INTEGERS)
def test_sequence_of_integers_wraps_around(
    device: Device, dtype: str, start: int, step: int, place: layouts.Placer, size: int
) -> None:
    run(device, dtype, size, place, start, step)


@pytest.mark.parametrize("size", [1, 33, 2049])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("start", "step"), STEPS)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_sequence_is_rounded_once(
    device: Device, dtype: str, start: float, step: float, place: layouts.Placer, size: int
) -> None:
    run(device, dtype, size, place, start, step)


def test_large_integers_stay_exact(device: Device) -> None:
    run(device, "int64", 5, layouts.contiguous, 2**62 + 1, 2**40 + 1)
