"""Elements that index arrays select."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

TABLE = (5, 6, 7)
# The table's shape, the first indexed dimension, and the shape of the index arrays, one for each dimension.
SELECTIONS: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = [
    ((9,), 0, (40,)),
    ((9, 33), 0, (40,)),
    ((9, 33), 1, (40,)),
    (TABLE, 1, (3, 4)),
    (TABLE, 2, ()),
    (TABLE, 0, (1,)),
    ((4, 1, 3), 1, (2,)),
    ((300, 5), 0, (1100,)),
]
MANY_ROWS = pytest.param(layouts.LARGE, 0, layouts.LARGE[:1], marks=pytest.mark.full)

OUT_OF_BOUNDS = [
    ("along_dim", 5),
    ("along_dim", -1),
    ("select", 5),
    ("select", -1),
    ("select", 2**40),
    ("index", 5),
    ("index", -6),
]


def table_values(dtype: str, shape: tuple[int, ...], *case: object) -> NDArray[Any]:
    """Elements whose bits are all compared: small integers, and NaN if the type has it."""
    values = rng(dtype, shape, *case).integers(0, 100, shape)
    if dtype not in oracle.FLOATING:
        return values
    return np.where(values == 0, np.nan, values)


def index_values(
    size: int, shape: tuple[int, ...], *case: object, negative: bool = False
) -> NDArray[Any]:
    """Indices in a dimension, with repetitions."""
    return rng(size, shape, *case).integers(-size if negative else 0, size, shape)


def run(
    device: Device,
    op: str,
    table: Array,
    indices: Sequence[Array],
    dim: int,
) -> tuple[Case, Array]:
    case = Case("gather", op, table.dtype, "contiguous")
    if op == "along_dim":
        shape = indices[0].shape
    else:
        shape = (*table.shape[:dim], *indices[0].shape, *table.shape[dim + len(indices) :])
    out = device.array(table.dtype, shape)
    device.run(case, [out], device.api.IndexOp[op], out, table, indices, dim)
    return case, out


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", oracle.ALL)
def test_along_a_dimension(device: Device, dtype: str, dim: int) -> None:
    table = device.array(dtype, TABLE, values=table_values(dtype, TABLE, dim))
    for shape in (TABLE, (3, 2, 4), (*TABLE[:dim], 11, *TABLE[dim + 1 :])):
        values = index_values(TABLE[dim], shape, dim)
        index = device.array("int64", shape, values=values)
        case, out = run(device, "along_dim", table, [index], dim)
        box = tuple(slice(None) if i == dim else slice(n) for i, n in enumerate(shape))
        expected = np.take_along_axis(table.values[box], values, dim)
        device.assert_exact(case, out, expected)


@pytest.mark.parametrize("index_type", ["int32", "int64"])
@pytest.mark.parametrize(("shape", "dim", "index_shape"), [*SELECTIONS, MANY_ROWS], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_select(
    device: Device,
    dtype: str,
    shape: tuple[int, ...],
    dim: int,
    index_shape: tuple[int, ...],
    index_type: str,
) -> None:
    table = device.array(dtype, shape, values=table_values(dtype, shape))
    values = index_values(shape[dim], index_shape)
    index = device.array(index_type, index_shape, values=values)
    case, out = run(device, "select", table, [index], dim)
    device.assert_exact(case, out, np.take(table.values, values, dim))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", oracle.ALL)
def test_index_with_negative_indices(device: Device, dtype: str, count: int, dim: int) -> None:
    table = device.array(dtype, TABLE, values=table_values(dtype, TABLE))
    shape = (4, 3)
    values = [index_values(TABLE[dim + i], shape, i, negative=True) for i in range(count)]
    indices = [device.array("int64", shape, values=value) for value in values]
    case, out = run(device, "index", table, indices, dim)
    expected = table.values[(slice(None),) * dim + tuple(values)]
    device.assert_exact(case, out, expected)


def test_index_arrays_may_be_broadcast(device: Device) -> None:
    table = device.array("float32", TABLE, values=table_values("float32", TABLE))
    shape = (5, 6)
    rows = device.array("int64", shape, layouts.expanded_columns, index_values(5, shape, 0))
    columns = device.array("int64", shape, layouts.expanded_rows, index_values(6, shape, 1))
    case, out = run(device, "index", table, [rows, columns], 0)
    device.assert_exact(case, out, table.values[rows.values, columns.values])


@pytest.mark.parametrize("shape", layouts.SHAPES, ids=str)
@pytest.mark.parametrize("op", ["along_dim", "index", "select"])
def test_gather_of_any_size(device: Device, op: str, shape: tuple[int, ...]) -> None:
    table = device.array("float32", shape, values=table_values("float32", shape))
    dim = len(shape) - 1
    values = index_values(shape[dim], shape)
    index = device.array("int64", shape, values=values)
    case, out = run(device, op, table, [index], dim)
    if op == "along_dim":
        expected = np.take_along_axis(table.values, values, dim)
    else:
        expected = np.take(table.values, values, dim)
    device.assert_exact(case, out, expected)


@pytest.mark.parametrize(("op", "index"), OUT_OF_BOUNDS)
def test_an_index_out_of_bounds_fails_at_the_next_synchronisation(
    device: Device, op: str, index: int
) -> None:
    table = device.array("float32", (5,), values=np.ones(5))
    values = np.asarray([0, 4, index, 1])
    indices = device.array("int64", (4,), values=values)
    out = device.array("float32", (4,))
    case = Case("gather", op, "float32", "contiguous")
    text = f"index {index} is out of bounds for a dimension of size 5"
    device.run_invalid(case, text, device.api.IndexOp[op], out, table, [indices], 0)


def test_every_operation_is_tested(device: Device) -> None:
    assert {"along_dim", "index", "select"} == {op.name for op in device.api.IndexOp}
