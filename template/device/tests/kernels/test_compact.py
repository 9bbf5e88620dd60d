"""The elements for which a mask is not zero, and their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

SHAPES = [(), (1,), (0,), (33,), (1025,), (17, 33), (3, 5, 7), (2, 0, 3), layouts.DEEP]


def sparse(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Elements, half of which are zero."""
    random = rng(dtype, shape)
    values = random.integers(1, 100, shape) * (random.random(shape) < 0.5)
    if dtype in oracle.FLOATING:
        values = np.where(values % 7 == 1, np.nan, np.where(values == 0, -0.0, values))
    return np.asarray(values).astype(DTYPES[dtype])


def run(
    device: Device, op: str, out: Array | None, source: Array | None, mask: Array
) -> tuple[Case, int]:
    case = Case("compact", op, (source or mask).dtype, "-")
    count = device.array("int64", (1,))
    device.run(case, [out, count], device.api.CompactOp[op], out, count, source, mask)
    return case, int(count.read()[0])


def check(
    device: Device, op: str, dtype: str, source: Array | None, mask: Array, expected: NDArray[Any]
) -> None:
    """Counts the elements, then writes them."""
    _, count = run(device, op, None, source, mask)
    assert count == len(expected)
    if expected.size == 0:
        return
    out = device.array(dtype, expected.shape)
    case, count = run(device, op, out, source, mask)
    assert count == len(expected)
    device.assert_exact(case, out, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", oracle.ALL)
def test_nonzero(device: Device, dtype: str, shape: tuple[int, ...]) -> None:
    mask = device.array(dtype, shape, values=sparse(dtype, shape))
    check(device, "nonzero", "int64", None, mask, np.argwhere(mask.values))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", oracle.ALL)
def test_masked_select(device: Device, dtype: str, shape: tuple[int, ...]) -> None:
    source = device.array(dtype, shape, values=rng(dtype).integers(0, 100, shape))
    mask = device.array("bool", shape, values=sparse("bool", shape))
    check(device, "masked_select", dtype, source, mask, source.values[mask.values])


@pytest.mark.parametrize("op", ["nonzero", "masked_select"])
@pytest.mark.parametrize("room", [1, 1000, 1500, 4000])
def test_a_short_output_receives_the_first_elements(device: Device, op: str, room: int) -> None:
    mask = device.array("bool", (3000,), values=rng(op).random(3000) < 0.5)
    source = device.array("int64", (3000,), values=np.arange(3000))
    if op == "nonzero":
        out = device.array("int64", (room, 1), values=np.full((room, 1), -7))
    else:
        out = device.array("int64", (room,), values=np.full(room, -7))
    case, count = run(device, op, out, source if op == "masked_select" else None, mask)
    places = np.flatnonzero(mask.values)
    assert count == len(places)
    expected = np.full(room, -7)
    expected[: min(room, count)] = places[:room]
    device.assert_exact(case, out, expected.reshape(out.shape))


def test_masks_may_be_broadcast(device: Device) -> None:
    shape = (17, 33)
    mask = device.array("bool", shape, layouts.expanded_rows, sparse("bool", shape))
    source = device.array("float32", shape, layouts.expanded_columns, sparse("float32", shape))
    check(device, "masked_select", "float32", source, mask, source.values[mask.values])


def test_every_operation_is_tested(device: Device) -> None:
    assert {"nonzero", "masked_select"} == {op.name for op in device.api.CompactOp}
