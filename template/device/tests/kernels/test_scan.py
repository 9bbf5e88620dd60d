"""Running sums, products, extremes and logarithms of sums along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

OPERATIONS: dict[str, Callable[..., Any]] = {
    "sum": np.cumsum,
    "prod": np.cumprod,
    "max": np.maximum.accumulate,
    "min": np.minimum.accumulate,
    "logsumexp": np.logaddexp.accumulate,
}


def run(
    device: Device,
    name: str,
    dtype: str,
    values: NDArray[Any],
    dim: int,
    with_indices: bool = False,
) -> tuple[Case, Array, Array | None, NDArray[Any]]:
    case = Case("scan", name, dtype, "contiguous")
    given = device.array(dtype, values.shape, values=values)
    out = device.array(dtype, values.shape)
    indices = device.array("int64", values.shape) if with_indices else None
    device.run(case, [out, indices], device.api.ScanOp[name], out, indices, given, dim)
    return case, out, indices, given.values


def last_extremes(name: str, values: NDArray[Any], dim: int) -> NDArray[Any]:
    """The index of each running extreme: the last of equal ones. After a NaN, the last NaN."""
    rows = np.moveaxis(values, dim, -1)
    running = OPERATIONS[name](rows, axis=-1)
    reached = (rows == running) | np.isnan(rows)
    places = np.where(reached, np.arange(rows.shape[-1]), 0)
    return np.moveaxis(np.maximum.accumulate(places, axis=-1), -1, dim)


def check_extremes(device: Device, name: str, dtype: str, values: NDArray[Any], dim: int) -> None:
    case, out, indices, given = run(device, name, dtype, values, dim, with_indices=True)
    wide = oracle.wide(given)
    device.assert_exact(case, out, OPERATIONS[name](wide, axis=dim))
    assert indices is not None
    device.assert_exact(case, indices, last_extremes(name, wide, dim))


@pytest.mark.parametrize(("shape", "dim"), layouts.ALONG, ids=str)
@pytest.mark.parametrize("dtype", oracle.REAL)
@pytest.mark.parametrize("name", ["max", "min"])
def test_running_extremes(
    device: Device, name: str, dtype: str, shape: tuple[int, ...], dim: int
) -> None:
    check_extremes(device, name, dtype, rng(name, dtype, shape).integers(0, 9, shape), dim)


@pytest.mark.parametrize(("shape", "dim"), layouts.ALONG, ids=str)
@pytest.mark.parametrize("dtype", oracle.NUMBERS)
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_running_sums_and_products(
    device: Device, name: str, dtype: str, shape: tuple[int, ...], dim: int
) -> None:
    # Elements whose results are exact for a row of any length.
    chosen = [-1, 0, 0, 1] if name == "sum" else [-1, 1, 1]
    if dtype == "uint8":
        chosen = [0, 1] if name == "sum" else [1, 1]
    values = np.asarray(rng(name, dtype, shape).choice(chosen, shape))
    if dtype == "uint8":
        values = values * (np.arange(shape[dim]) < 200).reshape(
            [-1 if i == dim else 1 for i in range(len(shape))]
        )
    case, out, _, given = run(device, name, dtype, values, dim)
    expected = OPERATIONS[name](oracle.wide(given), axis=dim)
    exact = dtype not in oracle.COMPLEX
    (device.assert_exact if exact else device.assert_close)(case, out, expected)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("name", ["sum", "prod", "logsumexp"])
def test_errors_stay_within_their_bound(device: Device, name: str, dtype: str, dim: int) -> None:
    shape = (300, 70)
    values = rng(name, dtype, dim).normal(size=shape)
    if name == "prod":
        values = np.exp(values / 20)
    case, out, _, given = run(device, name, dtype, values, dim)
    wide = oracle.wide(given)
    expected = OPERATIONS[name](wide, axis=dim)
    size = np.cumsum(np.abs(wide), axis=dim) if name == "sum" else np.abs(expected)
    if name == "logsumexp":
        size += np.log(2)  # each step adds at most this to a number that can cancel it
    calculated_in = "float64" if device.float64_arithmetic else dtype
    steps = 2.0 * shape[dim] * tolerances.unit_roundoff(DTYPES[calculated_in])
    allowed = tolerances.spacing(expected, DTYPES[dtype]) + steps * size
    device.assert_within(case, out.read(), expected, allowed)


@pytest.mark.parametrize("dtype", oracle.INTEGERS)
def test_integer_sums_wrap_around(device: Device, dtype: str) -> None:
    top = np.iinfo(DTYPES[dtype]).max
    values = np.full((2, 40), top).astype(DTYPES[dtype])
    case, out, _, given = run(device, "sum", dtype, values, 1)
    device.assert_exact(case, out, np.cumsum(given, axis=1, dtype=DTYPES[dtype]))


@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("name", ["max", "min"])
def test_results_after_a_nan_are_nan(device: Device, name: str, dtype: str) -> None:
    values = rng(name, dtype).normal(size=(40, 40))
    values[np.arange(40), np.arange(40)] = np.nan
    check_extremes(device, name, dtype, values, 1)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_logcumsumexp_of_infinities(device: Device, dtype: str) -> None:
    values = np.asarray([[-np.inf, -np.inf, 1, 2], [0, np.inf, 1, np.inf], [1, np.nan, 2, 3]])
    case, out, _, given = run(device, "logsumexp", dtype, values, 1)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(oracle.wide(given), axis=1)
    if device.float64_arithmetic:
        device.assert_close(case, out, expected)
    else:
        allowed = 4 * tolerances.spacing(np.nan_to_num(expected), DTYPES[dtype])
        device.assert_within(case, out.read(), expected, allowed)


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in device.api.ScanOp} == set(OPERATIONS)
