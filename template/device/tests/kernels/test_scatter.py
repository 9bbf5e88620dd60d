"""Changes of elements that index arrays select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

TABLE = (5, 6, 7)
Combine = Callable[[Any, Any], Any]
# Small integers, so that any order of the additions and multiplications is exact.
COMBINE: dict[str, Combine] = {
    "assign": lambda x, y: y,
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "min": np.minimum,
    "max": np.maximum,
}
MODES = [
    pytest.param(mode, dtype, id=f"{mode}-{dtype}")
    for mode in COMBINE
    for dtype in (oracle.BOOL + oracle.REAL if mode in ("min", "max") else oracle.ALL)
]


def run(
    device: Device,
    op: str,
    mode: str,
    table: Array,
    indices: Sequence[Array],
    source: Array,
    dim: int,
) -> Case:
    case = Case("scatter", f"{op}-{mode}", table.dtype, "contiguous")

    codes = (device.api.IndexOp[op], device.api.ScatterMode[mode])
    device.run(case, [table], *codes, table, indices, source, dim)
    if mode == "assign":
        device.differs = False  # which of several values is kept is specified in one mode only
    return case


def expect(
    combine: Combine, table: NDArray[Any], source: NDArray[Any], place: Callable[..., Any]
) -> NDArray[Any]:
    """The table after each element of the source in turn, in double precision."""
    wide = oracle.wide(table).copy()
    values = oracle.wide(source)
    for position in np.ndindex(source.shape):
        wide[place(*position)] = combine(wide[place(*position)], values[position])
    return wide


def numbers(dtype: str, shape: tuple[int, ...], *case: object) -> NDArray[Any]:
    return rng(dtype, shape, *case).integers(0, 3, shape).astype(DTYPES[dtype])


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(("mode", "dtype"), MODES)
def test_along_a_dimension(device: Device, mode: str, dtype: str, dim: int) -> None:
    shape = (2, 2, 2)
    table = device.array(dtype, TABLE, values=numbers(dtype, TABLE, mode))
    source = device.array(dtype, shape, values=numbers(dtype, shape, mode))
    index_values = rng(mode, dim).integers(0, TABLE[dim], shape)
    index = device.array("int64", shape, values=index_values)
    before = table.values

    def target(*position: int) -> tuple[int, ...]:
        return (*position[:dim], int(index_values[position]), *position[dim + 1 :])

    expected = expect(COMBINE[mode], before, source.values, target)
    case = run(device, "along_dim", mode, table, [index], source, dim)
    device.assert_exact(case, table, expected)


@pytest.mark.parametrize("op", ["index", "select"])
@pytest.mark.parametrize(("mode", "dtype"), MODES)
def test_rows(device: Device, mode: str, dtype: str, op: str) -> None:
    shape = (5, 4, 7)
    table = device.array(dtype, TABLE, values=numbers(dtype, TABLE, mode))
    source = device.array(dtype, shape, values=numbers(dtype, shape, mode))
    index_values = rng(mode, op).integers(-6 if op == "index" else 0, 6, (4,))
    index = device.array("int32", (4,), values=index_values)

    def target(i: int, j: int, k: int) -> tuple[int, ...]:
        return i, int(index_values[j]), k

    expected = expect(COMBINE[mode], table.values, source.values, target)
    case = run(device, op, mode, table, [index], source, 1)
    device.assert_exact(case, table, expected)


@pytest.mark.parametrize("mode", COMBINE)
def test_several_index_arrays(device: Device, mode: str) -> None:
    shape = (20, 7)
    table = device.array("float32", TABLE, values=numbers("float32", TABLE))
    source = device.array("float32", shape, values=numbers("float32", shape))
    rows, columns = rng(mode).integers(-5, 5, (2, 20))
    indices = [device.array("int64", (20,), values=values) for values in (rows, columns)]

    def target(i: int, j: int) -> tuple[int, ...]:
        return int(rows[i]), int(columns[i]), j

    expected = expect(COMBINE[mode], table.values, source.values, target)
    case = run(device, "index", mode, table, indices, source, 0)
    device.assert_exact(case, table, expected)


def check_select(
    device: Device,
    mode: str,
    dtype: str,
    table: Any,
    source: Any,
    index: Any,
    expected: Any,
    place: layouts.Placer = layouts.contiguous,
) -> None:
    """Changes some elements of a row."""
    into, indices = np.asarray(table), np.asarray(index)
    changed = device.array(dtype, into.shape, values=into)
    given = device.array(dtype, indices.shape, place, np.broadcast_to(source, indices.shape))
    where = device.array("int64", indices.shape, values=indices)
    case = run(device, "select", mode, changed, [where], given, 0)
    device.assert_exact(case, changed, np.asarray(expected))


def test_a_scalar_value(device: Device) -> None:
    expected = [0, 9, 2, 9, 4, 9]
    arguments = (np.arange(6), 9, [1, 5, 3], expected, layouts.one_element)
    check_select(device, "assign", "int16", *arguments)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_long_sums_are_rounded_at_the_end(device: Device, dtype: str) -> None:
    check_select(device, "add", dtype, [0, 0], 1, np.zeros(4096), [4096, 0])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_integers_wrap_around(device: Device, dtype: str) -> None:
    info = np.iinfo(DTYPES[dtype])
    check_select(device, "add", dtype, [info.max, 3], 1, [0, 1], [info.min, 4])


@pytest.mark.parametrize("mode", ["min", "max", "add"])
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_nan_is_propagated(device: Device, dtype: str, mode: str) -> None:
    expected = [np.nan, np.nan, 4.0 if mode == "add" else 2.0]
    arguments = ([np.nan, 1.0, 2.0], [1.0, np.nan, 2.0], np.arange(3), expected)
    check_select(device, mode, dtype, *arguments)


@pytest.mark.parametrize("shape", layouts.SHAPES, ids=str)
def test_scatter_of_any_size(device: Device, shape: tuple[int, ...]) -> None:
    index = rng(shape).integers(0, 10, shape)
    expected = np.bincount(index.reshape(-1), minlength=10)
    check_select(device, "add", "float32", np.zeros(10), 1, index, expected)


@pytest.mark.parametrize(("op", "index"), [("along_dim", 5), ("select", -1), ("index", -6)])
def test_an_index_out_of_bounds_fails_at_the_next_synchronisation(
    device: Device, op: str, index: int
) -> None:
    table = device.array("float32", (5,), values=np.zeros(5))
    source = device.array("float32", (3,), values=np.ones(3))
    indices = device.array("int64", (3,), values=np.asarray([0, index, 1]))
    case = Case("scatter", f"{op}-add", "float32", "contiguous")
    text = f"index {index} is out of bounds for a dimension of size 5"
    codes = (device.api.IndexOp[op], device.api.ScatterMode.add)
    device.run_invalid(case, text, *codes, table, [indices], source, 0)


def test_every_mode_is_tested(device: Device) -> None:
    assert set(COMBINE) == {mode.name for mode in device.api.ScatterMode}
