"""The extreme elements along a dimension, and their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case
from numpy.typing import NDArray


def run(
    device: Device,
    name: str,
    dtype: str,
    values: NDArray[Any],
    dim: int,
    with_values: bool = True,
) -> None:
    """Launches and compares with numpy, whose argmax and argmin return the first NaN as well."""
    case = Case("arg_reduce", name, dtype, "contiguous")
    given = device.array(dtype, values.shape, values=values)
    out_shape = tuple(1 if i == dim else size for i, size in enumerate(values.shape))
    indices = device.array("int64", out_shape)
    extremes = device.array(dtype, out_shape) if with_values else None
    code = device.api.ArgReduceOp[name]
    device.run(case, [indices, extremes], code, extremes, indices, given, dim)
    wide = oracle.wide(given.values)
    function = np.argmax if name == "max" else np.argmin
    expected = np.expand_dims(function(wide, axis=dim), dim)
    device.assert_exact(case, indices, expected)
    if extremes:
        device.assert_exact(case, extremes, np.take_along_axis(given.values, expected, dim))


@pytest.mark.parametrize(("shape", "dim"), layouts.ALONG, ids=str)
@pytest.mark.parametrize("dtype", oracle.BOOL + oracle.REAL)
@pytest.mark.parametrize("name", ["max", "min"])
def test_arg_reduce(
    device: Device, name: str, dtype: str, shape: tuple[int, ...], dim: int
) -> None:
    # Few different values, so that the first of equal ones must be found.
    values = rng(name, dtype, shape).integers(0, 2 if dtype == "bool" else 9, shape)
    run(device, name, dtype, values, dim)


@pytest.mark.parametrize("name", ["max", "min"])
def test_values_may_be_left_out(device: Device, name: str) -> None:
    run(device, name, "float32", rng(name).normal(size=(5, 7)), 1, with_values=False)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_index_of_the_first_nan_is_returned(device: Device, name: str, dtype: str) -> None:
    values = rng(name, dtype).normal(size=(40, 40))
    values[np.arange(40), np.arange(40)] = np.nan
    values[::3, 20] = np.nan
    for dim in (0, 1):
        run(device, name, dtype, values, dim)


@pytest.mark.parametrize("dtype", oracle.REAL)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extreme_values_are_found(device: Device, name: str, dtype: str) -> None:
    if dtype in oracle.INTEGERS:
        info = np.iinfo(DTYPES[dtype])
        ends = [info.min, info.max]
    else:
        ends = [-np.inf, np.inf]
    values = np.asarray([ends[:1] * 5, ends[1:] * 5, [*ends, *ends, ends[0]]])
    run(device, name, dtype, values.astype(DTYPES[dtype]), 1)


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in device.api.ArgReduceOp} == {"max", "min"}
