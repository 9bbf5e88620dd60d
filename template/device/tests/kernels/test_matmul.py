"""out = alpha * (a @ b) + beta * bias, over batches"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray


def rows_first(shape: tuple[int, ...]) -> layouts.Placement:
    """Each matrix of the batch transposed."""
    _, rows, columns = shape
    return layouts.Placement.of(shape, (rows * columns, 1, rows))


def padded(shape: tuple[int, ...]) -> layouts.Placement:
    """Padded rows, as in a slice of a wider matrix."""
    _, rows, columns = shape
    return layouts.Placement.of(shape, (rows * (columns + 5), columns + 5, 1), offset=2)


def shared(shape: tuple[int, ...]) -> layouts.Placement:
    """One matrix for the whole batch."""
    return layouts.Placement.of(shape, (0, shape[2], 1))


def one_row(shape: tuple[int, ...]) -> layouts.Placement:
    """One row of each matrix, repeated."""
    return layouts.Placement.of(shape, (shape[2], 0, 1))


PLACES = [layouts.contiguous, rows_first, padded, layouts.stepped, shared]
OUT_PLACES = [layouts.contiguous, rows_first, padded, layouts.stepped]
# Batch, rows, inner size, columns.
SIZES = [(1, 1, 1, 1), (2, 3, 5, 4), (1, 17, 33, 9), (3, 1, 20, 7), (2, 7, 20, 1)]
LARGE = [(1, 130, 300, 140), (2, 513, 129, 65)]
DTYPES_TESTED = oracle.NUMBERS


def params(device: Device, **fields: Any) -> Any:
    return device.descriptor("MatmulParams", **fields)


def product(a: Array, b: Array) -> NDArray[Any]:
    return np.asarray(oracle.wide(a.values) @ oracle.wide(b.values))


def check(
    device: Device,
    dtype: str,
    size: tuple[int, int, int, int],
    places: tuple[layouts.Placer, layouts.Placer, layouts.Placer],
) -> None:
    batch, rows, inner, columns = size
    case = Case("matmul", "matmul", dtype, "-".join(place.__name__ for place in places))
    a = device.integers(dtype, (batch, rows, inner), places[0], "a")
    b = device.integers(dtype, (batch, inner, columns), places[1], "b")
    out = device.array(dtype, (batch, rows, columns), places[2])
    device.run(case, [out], out, a, b, more=[params(device)])
    if dtype in oracle.INTEGERS:
        device.assert_exact(case, out, product(a, b))
    else:
        device.assert_close(case, out, product(a, b), signed_zeros=False)


@pytest.mark.parametrize("out_place", OUT_PLACES)
@pytest.mark.parametrize("b_place", PLACES)
@pytest.mark.parametrize("a_place", PLACES)
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "complex64"])
def test_matmul_of_any_layout(
    device: Device,
    dtype: str,
    a_place: layouts.Placer,
    b_place: layouts.Placer,
    out_place: layouts.Placer,
) -> None:
    check(device, dtype, (3, 6, 5, 4), (a_place, b_place, out_place))


@pytest.mark.parametrize("place", [layouts.one_element, layouts.expanded_columns, one_row])
@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32"])
def test_matmul_of_numbers_that_repeat(
    device: Device, dtype: str, is_second: bool, place: layouts.Placer
) -> None:
    """As in the gradient of a sum, which is one repeated number."""
    places = (layouts.contiguous, place) if is_second else (place, layouts.contiguous)
    check(device, dtype, (2, 6, 5, 4), (*places, layouts.contiguous))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_matmul(
    device: Device, dtype: str, transposed: bool, size: tuple[int, int, int, int]
) -> None:
    places = (rows_first, rows_first) if transposed else (layouts.contiguous, layouts.contiguous)
    check(device, dtype, size, (*places, layouts.contiguous))


@pytest.mark.full
@pytest.mark.parametrize("size", LARGE, ids=str)
@pytest.mark.parametrize("a_place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_large_matmul(
    device: Device, dtype: str, a_place: layouts.Placer, size: tuple[int, int, int, int]
) -> None:
    check(device, dtype, size, (a_place, rows_first, layouts.contiguous))


@pytest.mark.parametrize("bias_place", [layouts.contiguous, layouts.expanded_rows, rows_first])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, -1), (0.5, 2), (0, 3)])
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_bias_is_added(
    device: Device, dtype: str, alpha: float, beta: float, bias_place: layouts.Placer
) -> None:
    if dtype in oracle.INTEGERS and alpha == 0.5:
        alpha = 3
    case = Case("matmul", "bias", dtype, bias_place.__name__)
    a = device.integers(dtype, (2, 4, 5), layouts.contiguous, "a")
    b = device.integers(dtype, (2, 5, 3), layouts.contiguous, "b")
    bias = device.integers(dtype, (2, 4, 3), bias_place, "bias")
    out = device.array(dtype, (2, 4, 3))
    device.run(case, [out], out, a, b, more=[params(device, bias=bias, alpha=alpha, beta=beta)])
    expected = alpha * product(a, b) + beta * oracle.wide(bias.values)
    if dtype in oracle.INTEGERS:
        device.assert_exact(case, out, expected)
    else:
        device.assert_close(case, out, expected, signed_zeros=False)


@pytest.mark.parametrize("place", [layouts.contiguous, rows_first, layouts.stepped])
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_the_bias_may_be_the_output(device: Device, dtype: str, place: layouts.Placer) -> None:
    case = Case("matmul", "bias", dtype, place.__name__)
    a = device.integers(dtype, (2, 4, 5), layouts.contiguous, "a")
    b = device.integers(dtype, (2, 5, 3), layouts.contiguous, "b")
    out = device.integers(dtype, (2, 4, 3), place, "bias")
    device.run(case, [out], out, a, b, more=[params(device, bias=out, alpha=2, beta=3)])
    expected = 2 * product(a, b) + 3 * oracle.wide(out.values)
    if dtype in oracle.INTEGERS:
        device.assert_exact(case, out, expected)
    else:
        device.assert_close(case, out, expected, signed_zeros=False)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_bias_is_not_read_with_beta_0(device: Device, dtype: str) -> None:
    case = Case("matmul", "bias", dtype, "contiguous")
    a = device.integers(dtype, (1, 4, 5), layouts.contiguous, "a")
    b = device.integers(dtype, (1, 5, 3), layouts.contiguous, "b")
    bias = device.array(dtype, (1, 4, 3), values=np.full((1, 4, 3), np.nan))
    out = device.array(dtype, (1, 4, 3))
    device.run(case, [out], out, a, b, more=[params(device, bias=bias)])
    device.assert_close(case, out, product(a, b), signed_zeros=False)


@pytest.mark.parametrize("dtype", DTYPES_TESTED)
@pytest.mark.parametrize("with_bias", [False, True])
def test_an_inner_size_of_0_gives_the_bias(device: Device, dtype: str, with_bias: bool) -> None:
    case = Case("matmul", "bias" if with_bias else "matmul", dtype, "contiguous")
    a = device.array(dtype, (2, 3, 0), values=np.zeros((2, 3, 0)))
    b = device.array(dtype, (2, 0, 4), values=np.zeros((2, 0, 4)))
    bias = device.integers(dtype, (2, 3, 4), layouts.contiguous, "bias")
    out = device.array(dtype, (2, 3, 4))
    given = params(device, bias=bias, beta=2) if with_bias else params(device)
    device.run(case, [out], out, a, b, more=[given])
    expected = 2 * oracle.wide(bias.values) if with_bias else np.zeros((2, 3, 4))
    if dtype in oracle.INTEGERS:
        device.assert_exact(case, out, expected)
    else:
        device.assert_close(case, out, expected, signed_zeros=False)


@pytest.mark.parametrize("dtype", oracle.FLOATING + oracle.COMPLEX)
def test_errors_of_products_stay_within_their_bound(device: Device, dtype: str) -> None:
    case = Case("matmul", "matmul", dtype, "contiguous")
    random = rng(case)
    a = device.array(dtype, (2, 31, 200), values=random.normal(size=(2, 31, 200)))
    b = device.array(dtype, (2, 200, 33), values=random.normal(size=(2, 200, 33)))
    out = device.array(dtype, (2, 31, 33))
    device.run(case, [out], out, a, b, more=[params(device)])
    expected = product(a, b)
    total = np.abs(oracle.wide(a.values)) @ np.abs(oracle.wide(b.values))
    accumulator = DTYPES["float32" if dtype in ("float16", "bfloat16") else dtype]
    bound = 2 * 200 * tolerances.unit_roundoff(accumulator) * total
    device.assert_within(
        case, out.read(), expected, bound + tolerances.spacing(expected, DTYPES[dtype])
    )
