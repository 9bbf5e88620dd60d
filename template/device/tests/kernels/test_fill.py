"""out[...] = value"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts
from kernels.harness import DTYPES, Device
from kernels.support import Case

VALUES: dict[str, list[Any]] = {
    "b": [True, False, 0.5],
    "u": [0, 7, 255, 2.75],
    "i": [0, 7, -1, -2.75],
    "f": [0.0, -0.0, 1.5, 0.1, float("nan"), float("inf"), 3],
    "V": [0.0, -0.0, 1.5, 0.1, float("nan"), float("inf"), 3],
    "c": [0.0, 1.5, 0.5 - 2j, 3],
}
CASES = [
    pytest.param(dtype, value, id=f"{dtype}-{value}")
    for dtype in DTYPES
    for value in VALUES[DTYPES[dtype].kind]
]
SIZED = [
    pytest.param(layouts.of_shape(shape), marks=pytest.mark.full)
    for shape in (*layouts.SHAPES, layouts.LARGE)
]


def check(device: Device, dtype: str, value: Any, layout: layouts.Layout) -> None:
    case = Case("fill", dtype=dtype, layout=layout.name)
    out = device.array(dtype, layout.shape, layout.out)
    device.run(case, [out], out, value)
    number = np.asarray(value)
    if number.dtype == np.float64 and DTYPES[dtype].kind in "fV":
        number = number.astype(np.float32) if DTYPES[dtype].itemsize == 2 else number
    device.assert_exact(case, out, np.broadcast_to(number.astype(DTYPES[dtype]), layout.shape))


@pytest.mark.parametrize("layout", [*layouts.ELEMENTWISE, *SIZED], ids=str)
@pytest.mark.parametrize(("dtype", "value"), CASES)
def test_fill(device: Device, dtype: str, value: Any, layout: layouts.Layout) -> None:
    check(device, dtype, value, layout)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**53 + 1])
def test_large_integers_are_filled_exactly(device: Device, dtype: str, value: int) -> None:
    check(device, dtype, value, layouts.CONTIGUOUS)
