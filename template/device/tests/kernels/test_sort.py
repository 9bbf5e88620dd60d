"""Elements along a dimension in order: sort and top_k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import oracle
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

SHAPES = [((1,), 0), ((33,), 0), ((1025,), 0), ((17, 33), 0), ((17, 33), 1), ((3, 5, 7), 1)]
LONG = pytest.param((2, 300_000), 1, marks=pytest.mark.full)
SORTED = oracle.BOOL + oracle.REAL


def unsorted(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Elements with repetitions, and values that are difficult to order."""
    random = rng(dtype, shape)
    values = random.integers(0, 40, shape).astype(DTYPES[dtype])
    special: list[Any] = []
    if dtype in oracle.FLOATING:
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.5, np.nan]
    elif dtype != "bool":
        info = np.iinfo(DTYPES[dtype])
        special = [info.min, info.max, info.min + 1]
    for value in special[: values.size]:
        values.reshape(-1)[random.integers(values.size)] = value
    return values


def order(values: NDArray[Any], dim: int, descending: bool) -> NDArray[Any]:
    """The stable order along `dim`. NaN is the largest in numpy as well."""
    if not descending:
        return np.argsort(values, dim, kind="stable")
    backwards = np.argsort(np.flip(values, dim), dim, kind="stable")
    return np.flip(values.shape[dim] - 1 - backwards, dim)


def run(
    device: Device,
    family: str,
    source: Array,
    size: int,
    dim: int,
    *flags: bool,
) -> tuple[Case, Array, Array]:
    names = ("descending", "stable") if family == "sort" else ("largest", "sorted")
    op = "-".join(name for name, flag in zip(names, flags, strict=True) if flag) or "-"
    case = Case(family, op, source.dtype, "contiguous")
    shape = (*source.shape[:dim], size, *source.shape[dim + 1 :])
    values = device.array(source.dtype, shape)
    indices = device.array("int64", shape)
    device.run(case, [values, indices], values, indices, source, dim, *flags)
    return case, values, indices


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [*SHAPES, LONG], ids=str)
@pytest.mark.parametrize("dtype", SORTED)
def test_stable_sort(
    device: Device,
    dtype: str,
    shape: tuple[int, ...],
    dim: int,
    descending: bool,
) -> None:
    source = device.array(dtype, shape, values=unsorted(dtype, shape))
    case, values, indices = run(device, "sort", source, shape[dim], dim, descending, True)
    expected = order(oracle.wide(source.values), dim, descending)
    device.assert_exact(case, indices, expected)
    device.assert_exact(case, values, np.take_along_axis(source.values, expected, dim))


def check_in_order(
    device: Device, family: str, dtype: str, size: int, dim: int, *flags: bool
) -> None:
    """Compares the values, and looks them up by their indices, whose order is not specified."""
    source = device.array(dtype, (17, 33), values=unsorted(dtype, (17, 33)))
    wide = oracle.wide(source.values)
    best = np.take(order(wide, dim, flags[0]), range(size), dim)
    expected = np.take_along_axis(wide, best, dim)
    case, values, indices = run(device, family, source, size, dim, *flags)
    got = oracle.wide(values.read())
    assert np.array_equal(got, expected, equal_nan=got.dtype.kind == "f"), case
    places = indices.read()
    device.assert_exact(case, values, np.take_along_axis(source.values, places, dim))
    in_order = np.sort(places, dim)
    assert (np.diff(in_order, axis=dim) > 0).all(), f"{case}: an index occurs twice"


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", SORTED)
def test_unstable_sort(device: Device, dtype: str, descending: bool) -> None:
    check_in_order(device, "sort", dtype, 33, 1, descending, False)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("size", [1, 5, 17])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", SORTED)
def test_top_k(device: Device, dtype: str, dim: int, size: int, largest: bool) -> None:
    check_in_order(device, "top_k", dtype, size, dim, largest, True)


@pytest.mark.parametrize("largest", [False, True])
def test_unsorted_top_k_gives_the_same_elements(device: Device, largest: bool) -> None:
    source = device.array("float32", (4, 33), values=unsorted("float32", (4, 33)))
    case, values, _ = run(device, "top_k", source, 6, 1, largest, False)
    best = order(source.values, 1, largest)[:, :6]
    expected = np.sort(np.take_along_axis(source.values, best, 1), 1)
    assert np.array_equal(np.sort(values.read(), 1), expected, equal_nan=True), case
