"""softmax and log_softmax along one dimension, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

OPERATIONS = ["softmax", "log_softmax"]
# Rows that fit a vector, a block of several vectors, or neither. The dimension is first, in the
# middle, or last.
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((17, 33), 1),
    ((17, 33), 0),
    ((5, 1), 1),
    ((1,), 0),
    ((3, 5, 7), 1),
    ((2, 1025), 1),
    ((2, 3000), 1),
    ((3000, 2), 0),
    (layouts.DEEP, 3),
]


def softmax(op: str, values: NDArray[Any], dim: int) -> NDArray[Any]:
    # numpy sums columns term by term, which in float64 is no more accurate than the device.
    values = values.astype(np.longdouble)
    shifted = values - values.max(dim, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(dim, keepdims=True)
    result = exponentials / total if op == "softmax" else shifted - np.log(total)
    return np.asarray(result).astype(np.float64)


def run(device: Device, case: Case, out: Array, source: Array, dim: int) -> None:
    code = device.api.SoftmaxOp[case.op]
    device.run(case, [out], code, out, source, dim)


def check(
    device: Device,
    op: str,
    dtype: str,
    shape: tuple[int, ...],
    dim: int,
    out_dtype: str | None = None,
) -> None:
    wider = f"out={out_dtype}" if out_dtype else ""
    case = Case("softmax", op, dtype, "contiguous", parameters=wider)
    values = rng(case, shape).uniform(-4, 4, shape)
    source = device.array(dtype, shape, values=values)
    out = device.array(out_dtype or dtype, shape)
    run(device, case, out, source, dim)
    given = oracle.wide(source.values)
    scale = np.abs(given).max() * 2 + np.log(shape[dim]) if op == "log_softmax" else 0.0
    device.assert_close(case, out, softmax(op, given, dim), scale, signed_zeros=False)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("op", OPERATIONS)
def test_softmax_of_any_shape(
    device: Device, op: str, dtype: str, shape: tuple[int, ...], dim: int
) -> None:
    check(device, op, dtype, shape, dim)


@pytest.mark.full
@pytest.mark.parametrize("op", OPERATIONS)
def test_softmax_of_many_rows(device: Device, op: str) -> None:
    check(device, op, "float32", layouts.LARGE, 1)
    check(device, op, "float32", layouts.LARGE, 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", OPERATIONS)
def test_results_may_be_wider(device: Device, op: str, dtype: str) -> None:
    check(device, op, dtype, (17, 33), 1, out_dtype="float32")


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_large_numbers_do_not_overflow(device: Device, dtype: str) -> None:
    case = Case("softmax", "softmax", dtype, "contiguous")
    values = np.asarray([[30000.0, 30000.0, -30000.0], [-30000.0, -30000.0, -30000.0]])
    source = device.array(dtype, (2, 3), values=values)
    out = device.array(dtype, (2, 3))
    run(device, case, out, source, 1)
    device.assert_close(case, out, np.asarray([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]))


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_nan_and_infinities_affect_only_their_row(device: Device, dtype: str, op: str) -> None:
    case = Case("softmax", op, dtype, "contiguous")
    inf, nan = np.inf, np.nan
    rows = [[nan] + [0.0] * 39, [0.0] * 39 + [nan], [-inf] * 40, [0.0, 0.0] + [-inf] * 38]
    source = device.array(dtype, (4, 40), values=np.asarray(rows))
    out = device.array(dtype, (4, 40))
    run(device, case, out, source, 1)
    half, none = (0.5, 0.0) if op == "softmax" else (np.log(0.5), -inf)
    expected = np.full((4, 40), nan)
    expected[3] = [half] * 2 + [none] * 38
    device.assert_close(case, out, expected)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", oracle.FLOATING)
@pytest.mark.parametrize("op", OPERATIONS)
def test_gradients(device: Device, op: str, dtype: str, shape: tuple[int, ...], dim: int) -> None:
    case = Case("softmax_backward", op, dtype, "contiguous")
    random = rng(case, shape)
    out = device.array(dtype, shape, values=softmax(op, random.uniform(-4, 4, shape), dim))
    grad_out = device.array(dtype, shape, values=random.normal(size=shape))
    grad_in = device.array(dtype, shape)
    code = device.api.SoftmaxOp[op]
    device.run(case, [grad_in], code, grad_in, grad_out, out, dim)
    gradient, result = oracle.wide(grad_out.values), oracle.wide(out.values)
    if op == "softmax":
        share = np.asarray(gradient * result)
        expected = share - result * share.sum(dim, keepdims=True)
        scale = np.abs(share) + np.abs(result) * np.abs(share).sum(dim, keepdims=True)
    else:
        factor = np.exp(result)
        expected = gradient - factor * gradient.sum(dim, keepdims=True)
        scale = np.abs(gradient) + factor * np.abs(gradient).sum(dim, keepdims=True)
    device.assert_close(case, grad_in, expected, scale, signed_zeros=False)


def test_every_operation_is_tested(device: Device) -> None:
    assert set(OPERATIONS) == {op.name for op in device.api.SoftmaxOp}
