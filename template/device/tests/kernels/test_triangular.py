"""The part of a matrix on one side of a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

EXPECTED = {"lower": np.tril, "upper": np.triu}
DIAGONALS = [0, 1, -1, 4, -4, 100, -100]


def matrices(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.asarray(rng(dtype, shape).integers(1, 100, shape)).astype(DTYPES[dtype])


def run(
    device: Device, op: str, out: Array, source: Array, diagonal: int, layout: str
) -> tuple[Case, NDArray[Any]]:
    case = Case("triangular", op, out.dtype, layout)
    before = source.values
    code = device.api.TriangularOp[op]
    device.run(case, [out], code, out, source, diagonal)
    return case, EXPECTED[op](before, diagonal)


@pytest.mark.parametrize("layout", [x for x in layouts.ELEMENTWISE if x.shape], ids=str)
@pytest.mark.parametrize("diagonal", DIAGONALS)
@pytest.mark.parametrize("op", EXPECTED)
@pytest.mark.parametrize("dtype", oracle.ALL)
def test_triangular(
    device: Device, dtype: str, op: str, diagonal: int, layout: layouts.Layout
) -> None:
    source = device.array(dtype, layout.shape, layout.inputs[0], matrices(dtype, layout.shape))
    out = source if layout.in_place else device.array(dtype, layout.shape, layout.out)
    case, expected = run(device, op, out, source, diagonal, layout.name)
    device.assert_exact(case, out, expected)


@pytest.mark.parametrize("op", EXPECTED)
@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (3, 5, 7), (2, 3, 1025, 4)], ids=str)
def test_triangular_of_any_size(device: Device, op: str, shape: tuple[int, ...]) -> None:
    source = device.array("float32", shape, values=matrices("float32", shape))
    out = device.array("float32", shape)
    case, expected = run(device, op, out, source, 0, "contiguous")
    device.assert_exact(case, out, expected)


def test_nan_outside_the_triangle_becomes_zero(device: Device) -> None:
    source = device.array("float32", (3, 3), values=np.full((3, 3), np.nan))
    out = device.array("float32", (3, 3))
    case, expected = run(device, "lower", out, source, -1, "contiguous")
    assert (expected[0] == 0).all()
    device.assert_exact(case, out, expected)


def test_every_operation_is_tested(device: Device) -> None:
    assert set(EXPECTED) == {op.name for op in device.api.TriangularOp}
