"""Gradients times the inverse loss scale, and whether all of them were finite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import Array, Device, rng
from kernels.support import Case


def run(device: Device, case: Case, arrays: Sequence[Array], factor: float, found: float) -> Array:
    found_inf = device.array("float32", (1,), values=np.asarray([found]))
    inverse_scale = device.array("float32", (1,), values=np.asarray([factor]))
    device.run(case, [*arrays, found_inf], arrays, found_inf, inverse_scale)
    return found_inf


@pytest.mark.parametrize(
    "place", [layouts.contiguous, layouts.offset, layouts.transposed, layouts.stepped]
)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_unscale(device: Device, dtype: str, place: layouts.Placer) -> None:
    case = Case("unscale", "unscale", dtype, place.__name__)
    arrays = [
        device.array(dtype, shape, place, rng(case, shape).normal(size=shape))
        for shape in [(17, 33), (1,), (3, 5, 7), (2000,)]
    ]
    before = [array.values for array in arrays]
    found_inf = run(device, case, arrays, 0.3, 0.0)
    for array, values in zip(arrays, before, strict=True):
        device.assert_close(case, array, oracle.wide(values) * float(np.float32(0.3)))
    assert found_inf.read()[0] == 0


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 500, 999])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_one_element_that_is_not_finite_is_found(
    device: Device, dtype: str, place: int, value: float
) -> None:
    case = Case("unscale", "unscale", dtype, "contiguous")
    values = np.ones(1000)
    values[place] = value
    arrays = [device.array(dtype, (7,), values=np.ones(7)), device.array(dtype, (1000,))]
    arrays[1].set(values.astype(arrays[1].storage.dtype))
    assert run(device, case, arrays, 0.5, 0.0).read()[0] == 1


def test_an_earlier_found_inf_is_kept(device: Device) -> None:
    case = Case("unscale", "unscale", "float32", "contiguous")
    arrays = [device.array("float32", (7,), values=np.ones(7))]
    assert run(device, case, arrays, 0.5, 1.0).read()[0] == 1
