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

Size = tuple[int, int, int, int]


def product(a: Array, b: Array) -> NDArray[Any]:
    return np.asarray(oracle.wide(a.values) @ oracle.wide(b.values))


def check(
    device: Device,
    case: Case,
    size: Size,
    places: tuple[layouts.Placer, ...] = (layouts.contiguous,) * 3,
    out: Array | None = None,
    bias: Array | None = None,
    alpha: float = 1,
    beta: float = 0,
) -> None:
    """Multiplies small integers, and compares the result."""
    batch, rows, inner, columns = size
    a = device.integers(case.dtype, (batch, rows, inner), places[0], "a")
    b = device.integers(case.dtype, (batch, inner, columns), places[1], "b")
    out = out or device.array(case.dtype, (batch, rows, columns), places[2])
    params = device.descriptor("MatmulParams", bias=bias, alpha=alpha, beta=beta)
    device.run(case, [out], out, a, b, more=[params])
    expected = alpha * product(a, b)
    if bias and beta:
        expected = expected + beta * oracle.wide(bias.values)
    device.assert_close(case, out, expected, signed_zeros=False)


def check_places(device: Device, dtype: str, size: Size, *places: layouts.Placer) -> None:
    case = Case("matmul", "matmul", dtype, "-".join(place.__name__ for place in places))
    check(device, case, size, places)


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
    check_places(device, dtype, (3, 6, 5, 4), a_place, b_place, out_place)


@pytest.mark.parametrize("place", [layouts.one_element, layouts.expanded_columns, one_row])
@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32"])
def test_matmul_of_expanded_factors(
    device: Device, dtype: str, is_second: bool, place: layouts.Placer
) -> None:
    """As in the gradient of a sum, which is one repeated number."""
    places = (layouts.contiguous, place) if is_second else (place, layouts.contiguous)
    check_places(device, dtype, (2, 6, 5, 4), *places, layouts.contiguous)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_matmul(device: Device, dtype: str, transposed: bool, size: Size) -> None:
    places = (rows_first, rows_first) if transposed else (layouts.contiguous, layouts.contiguous)
    check_places(device, dtype, size, *places, layouts.contiguous)


@pytest.mark.full
@pytest.mark.parametrize("size", LARGE, ids=str)
@pytest.mark.parametrize("a_place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_large_matmul(device: Device, dtype: str, a_place: layouts.Placer, size: Size) -> None:
    check_places(device, dtype, size, a_place, rows_first, layouts.contiguous)


@pytest.mark.parametrize("bias_place", [layouts.contiguous, layouts.expanded_rows, rows_first])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, -1), (0.5, 2), (0, 3)])
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_bias_is_added(
    device: Device, dtype: str, alpha: float, beta: float, bias_place: layouts.Placer
) -> None:
    if dtype in oracle.INTEGERS and alpha == 0.5:
        alpha = 3
    case = Case("matmul", "bias", dtype, bias_place.__name__)
    bias = device.integers(dtype, (2, 4, 3), bias_place, "bias")
    check(device, case, (2, 4, 5, 3), bias=bias, alpha=alpha, beta=beta)


@pytest.mark.parametrize("place", [layouts.contiguous, rows_first, layouts.stepped])
@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_the_bias_may_be_the_output(device: Device, dtype: str, place: layouts.Placer) -> None:
    case = Case("matmul", "bias", dtype, place.__name__)
    out = device.integers(dtype, (2, 4, 3), place, "bias")
    check(device, case, (2, 4, 5, 3), out=out, bias=out, alpha=2, beta=3)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_bias_is_not_read_with_beta_0(device: Device, dtype: str) -> None:
    bias = device.array(dtype, (1, 4, 3), values=np.full((1, 4, 3), np.nan))
    check(device, Case("matmul", "bias", dtype, "contiguous"), (1, 4, 5, 3), bias=bias)


@pytest.mark.parametrize("dtype", DTYPES_TESTED)
def test_an_inner_size_of_0_gives_the_bias(device: Device, dtype: str) -> None:
    bias = device.integers(dtype, (2, 3, 4), layouts.contiguous, "bias")
    size = (2, 3, 0, 4)
    check(device, Case("matmul", "matmul", dtype, "contiguous"), size)
    check(device, Case("matmul", "bias", dtype, "contiguous"), size, bias=bias, beta=2)


@pytest.mark.parametrize("dtype", oracle.FLOATING + oracle.COMPLEX)
def test_errors_of_products_stay_within_their_bound(device: Device, dtype: str) -> None:
    case = Case("matmul", "matmul", dtype, "contiguous")
    random = rng(case)
    a = device.array(dtype, (2, 31, 200), values=random.normal(size=(2, 31, 200)))
    b = device.array(dtype, (2, 200, 33), values=random.normal(size=(2, 200, 33)))
    out = device.array(dtype, (2, 31, 33))
    device.run(case, [out], out, a, b, more=[device.descriptor("MatmulParams")])
    expected = product(a, b)
    total = np.abs(oracle.wide(a.values)) @ np.abs(oracle.wide(b.values))
    bound = tolerances.error_of_sum(dtype, 2 * 200, total)
    bound = bound + tolerances.spacing(expected, DTYPES[dtype])
    device.assert_within(case, out.read(), expected, bound)
