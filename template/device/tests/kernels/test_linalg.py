"""Factors of matrices and their uses, eigenvalues and singular values.

Decompositions are checked by the product of their factors, because signs and phases may differ.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernels.harness import DTYPES, Array, Device, uniform
from kernels.support import Case
from numpy.typing import NDArray

REAL = {
    "float32": "float32",
    "float64": "float64",
    "complex64": "float32",
    "complex128": "float64",
}
COMPLEX = {"float32": "complex64", "float64": "complex128"}
TYPES = tuple(REAL)
SHAPES = [(1, 1), (3, 5), (5, 3), (6, 6), (40, 23), (23, 40), (65, 65)]
SIZES = [1, 2, 7, 33, 65]
BATCH = 3


def hermitian(dtype: str, size: int, definite: bool = True) -> NDArray[Any]:
    values = uniform(dtype, (BATCH, size, size))
    both = values + adjoint(values)
    return np.asarray(both + (2 * size * np.eye(size, dtype=values.dtype) if definite else 0))


def adjoint(values: NDArray[Any]) -> NDArray[Any]:
    return np.conj(np.swapaxes(values, -1, -2))


def wide(array: Array) -> NDArray[Any]:
    return np.asarray(array.read()).astype(np.complex128)


def assert_near(case: Case, got: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compares up to rounding errors, which grow with the size of the matrices."""
    size = max(got.shape[-2:]) * (1 + np.abs(expected).max())
    limit = 20 * np.finfo(DTYPES[REAL[case.dtype]]).eps * size
    assert np.abs(got - expected).max() <= limit, case


def case_of(family: str, dtype: str, op: str = "-") -> Case:
    return Case(family, op, dtype, "contiguous")


def info_of(device: Device) -> Array:
    return device.array("int32", (BATCH,))


def in_and_out(
    device: Device, dtype: str, values: NDArray[Any], in_place: bool
) -> tuple[Array, Array]:
    source = device.array(dtype, values.shape, values=values)
    return source, source if in_place else device.array(dtype, values.shape)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky(device: Device, dtype: str, size: int, upper: bool, in_place: bool) -> None:
    matrices = hermitian(dtype, size)
    # The other triangle is ignored.
    noise = uniform(dtype, (BATCH, size, size))
    given = (
        np.triu(matrices) + np.tril(noise, -1) if upper else np.tril(matrices) + np.triu(noise, 1)
    )
    source, out = in_and_out(device, dtype, given, in_place)
    info = info_of(device)
    case = case_of("cholesky", dtype, "upper" if upper else "lower")
    device.run(case, [out, info], upper, out, info, source)
    factor = wide(out)
    other = np.tril(factor, -1) if upper else np.triu(factor, 1)
    assert (other == 0).all()
    product = adjoint(factor) @ factor if upper else factor @ adjoint(factor)
    assert_near(case, product, matrices)
    assert (info.read() == 0).all()


@pytest.mark.parametrize("pivot", [-1, np.nan])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_failed_cholesky_is_reported_for_its_matrix_only(
    device: Device, dtype: str, pivot: float
) -> None:
    matrices = hermitian(dtype, 5)
    matrices[1, 2, 2] = pivot
    source, out = in_and_out(device, dtype, matrices, in_place=False)
    info = info_of(device)
    case = case_of("cholesky", dtype)
    device.run(case, [out, info], False, out, info, source)
    assert info.read().tolist() == [0, 3, 0]
    factor = wide(out)[[0, 2]]
    assert_near(case, factor @ adjoint(factor), matrices[[0, 2]])


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_lu(device: Device, dtype: str, shape: tuple[int, int], in_place: bool) -> None:
    rows, columns = shape
    matrices = uniform(dtype, (BATCH, rows, columns))
    source, out = in_and_out(device, dtype, matrices, in_place)
    smaller = min(shape)
    pivots, info = device.array("int32", (BATCH, smaller)), info_of(device)
    case = case_of("lu", dtype)
    device.run(case, [out, pivots, info], out, pivots, info, source)
    factors = wide(out)
    lower = np.tril(factors, -1)[:, :, :smaller] + np.eye(rows, smaller)
    permutation = device.array("int64", (BATCH, rows))
    device.run(case_of("unpack_pivots", "int32"), [permutation], permutation, pivots)
    expected = np.take_along_axis(matrices, permutation.read()[:, :, None], 1)
    assert_near(case, lower @ np.triu(factors)[:, :smaller], expected)
    assert np.abs(lower).max() <= 1.5  # pivots are compared by |real| + |imag|
    assert (info.read() == 0).all()


def test_a_zero_pivot_is_reported(device: Device) -> None:
    matrices = np.zeros((BATCH, 3, 3), np.float32)
    matrices[1] = np.eye(3)
    matrices[2] = np.diag([1, 0, 1])
    source, out = in_and_out(device, "float32", matrices, in_place=False)
    pivots, info = device.array("int32", (BATCH, 3)), info_of(device)
    case = case_of("lu", "float32")
    device.run(case, [out, pivots, info], out, pivots, info, source)
    assert info.read().tolist() == [1, 0, 2]


def test_unpack_pivots(device: Device) -> None:
    exchanges = np.asarray([[3, 2, 5], [1, 4, 4], [5, 5, 5]])
    pivots = device.array("int32", (3, 3), values=exchanges)
    out = device.array("int64", (3, 5))
    device.run(case_of("unpack_pivots", "int32"), [out], out, pivots)
    expected = []
    for row in exchanges:
        places = list(range(5))
        for i, other in enumerate(row - 1):
            places[i], places[other] = places[other], places[i]
        expected.append(places)
    assert out.read().tolist() == expected


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_qr_and_products_of_its_reflections(
    device: Device, dtype: str, shape: tuple[int, int]
) -> None:
    rows, columns = shape
    smaller = min(shape)
    matrices = uniform(dtype, (BATCH, rows, columns))
    source, reflectors = in_and_out(device, dtype, matrices, in_place=False)
    tau = device.array(dtype, (BATCH, smaller))
    case = case_of("qr", dtype)
    device.run(case, [reflectors, tau], reflectors, tau, source)
    upper = np.triu(wide(reflectors))
    # All of Q, and a few columns of it.
    whole = device.array(dtype, (BATCH, rows, rows))
    thin = device.array(dtype, (BATCH, rows, smaller))
    case = case_of("householder", dtype)
    for out in (whole, thin):
        device.run(case, [out], device.api.HouseholderParams(), out, reflectors, tau, None)
    q = wide(whole)
    assert_near(case, q @ adjoint(q), np.broadcast_to(np.eye(rows), q.shape))
    assert_near(case, q @ upper, matrices)
    assert_near(case, wide(thin), q[:, :, :smaller])
    # Products with Q from both sides.
    for left in (False, True):
        for is_adjoint in (False, True):
            size = (rows, 4) if left else (4, rows)
            given = device.array(dtype, (BATCH, *size), values=uniform(dtype, (BATCH, *size)))
            out = device.array(dtype, (BATCH, *size))
            params = device.api.HouseholderParams(left=left, adjoint=is_adjoint)
            device.run(case, [out], params, out, reflectors, tau, given)
            factor = adjoint(q) if is_adjoint else q
            assert_near(case, wide(out), factor @ given.values if left else given.values @ factor)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_solve_triangular(
    device: Device,
    dtype: str,
    left: bool,
    upper: bool,
) -> None:
    size = 6
    values = uniform(dtype, (BATCH, size, size)) + 4 * np.eye(size, dtype=DTYPES[dtype])
    a = device.array(dtype, values.shape, values=values)
    shape = (BATCH, size, 4) if left else (BATCH, 4, size)
    right = uniform(dtype, shape)
    case = case_of("solve_triangular", dtype)
    for unit, conjugate in itertools.product((False, True), repeat=2):
        b = device.array(dtype, shape, values=right)
        out = device.array(dtype, shape)
        params = device.api.TriangularSolveParams(
            left=left, upper=upper, unit=unit, conjugate=conjugate
        )
        device.run(case, [out], params, out, a, b)
        part = np.triu(values) if upper else np.tril(values)
        if unit:
            part = part * (1 - np.eye(size)) + np.eye(size)
        part = np.conj(part) if conjugate else part
        x = wide(out)
        assert_near(case, part @ x if left else x @ part, right)
        device.run(case, [b], params, b, a, b)  # in place
        assert_near(case, wide(b), x)


@pytest.mark.parametrize("is_hermitian", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_ldl(device: Device, dtype: str, is_hermitian: bool) -> None:
    size = 7
    values = uniform(dtype, (BATCH, size, size))
    other = adjoint(values) if is_hermitian else np.swapaxes(values, 1, 2)
    matrices = np.asarray(values + other)
    source, factors = in_and_out(device, dtype, matrices, in_place=False)
    pivots, info = device.array("int32", (BATCH, size)), info_of(device)
    case = case_of("ldl", dtype, "hermitian" if is_hermitian else "symmetric")
    device.run(case, [factors, pivots, info], is_hermitian, factors, pivots, info, source)
    assert (info.read() == 0).all()
    b = device.array(dtype, (BATCH, size, 3), values=uniform(dtype, (BATCH, size, 3)))
    out = device.array(dtype, (BATCH, size, 3))
    case = case_of("ldl_solve", dtype, case.op)
    device.run(case, [out], is_hermitian, out, factors, pivots, b)
    assert_near(case, matrices @ wide(out), b.values)


# Factors that the host computes: a device may support their use without the factorization.


@pytest.mark.parametrize("dtype", TYPES)
def test_householder_with_reflectors_from_lapack(device: Device, dtype: str) -> None:
    matrices = uniform(dtype, (BATCH, 7, 4))
    raw, tau = np.linalg.qr(matrices, mode="raw")
    reflectors = device.array(
        dtype, (BATCH, 7, 4), values=np.swapaxes(raw, 1, 2).astype(DTYPES[dtype])
    )
    factors = device.array(dtype, (BATCH, 4), values=tau.astype(DTYPES[dtype]))
    out = device.array(dtype, (BATCH, 7, 4))
    case = case_of("householder", dtype)
    device.run(case, [out], device.api.HouseholderParams(), out, reflectors, factors, None)
    assert_near(case, wide(out), np.linalg.qr(matrices)[0])


@pytest.mark.parametrize("dtype", TYPES)
def test_ldl_solve_with_given_factors(device: Device, dtype: str) -> None:
    size = 5
    matrices = hermitian(dtype, size)
    lower = np.linalg.cholesky(matrices)
    diagonal = np.einsum("bii->bi", lower)
    unit = lower / diagonal[:, np.newaxis, :]
    packed = np.tril(unit, -1) + np.eye(size) * (diagonal**2)[:, np.newaxis, :]
    factors = device.array(dtype, (BATCH, size, size), values=packed.astype(DTYPES[dtype]))
    none = np.broadcast_to(np.arange(1, size + 1, dtype=np.int32), (BATCH, size))
    pivots = device.array("int32", (BATCH, size), values=none)
    b = device.array(dtype, (BATCH, size, 3), values=uniform(dtype, (BATCH, size, 3)))
    out = device.array(dtype, (BATCH, size, 3))
    case = case_of("ldl_solve", dtype, "hermitian")
    device.run(case, [out], True, out, factors, pivots, b)
    assert_near(case, matrices @ wide(out), b.values)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_eigh(device: Device, dtype: str, size: int, upper: bool) -> None:
    matrices = hermitian(dtype, size, definite=False)
    given = np.triu(matrices) if upper else np.tril(matrices)
    source, vectors = in_and_out(device, dtype, given, in_place=False)
    values, info = device.array(REAL[dtype], (BATCH, size)), info_of(device)
    case = case_of("eigh", dtype, "upper" if upper else "lower")
    device.run(case, [values, vectors, info], upper, values, vectors, info, source)
    found, columns = values.read(), wide(vectors)
    assert (np.diff(found) >= 0).all()
    assert_near(case, matrices @ columns, columns * found[:, None, :])
    assert_near(case, adjoint(columns) @ columns, np.broadcast_to(np.eye(size), columns.shape))
    alone = device.array(REAL[dtype], (BATCH, size))
    again = info_of(device)
    device.run(case, [alone, None, again], upper, alone, None, again, source)
    assert_near(case, alone.read()[:, None], found[:, None])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_eig(device: Device, dtype: str, size: int) -> None:
    matrices = uniform(dtype, (BATCH, size, size))
    source = device.array(dtype, matrices.shape, values=matrices)
    of_out = COMPLEX.get(dtype, dtype)
    values, info = device.array(of_out, (BATCH, size)), info_of(device)
    vectors = device.array(of_out, matrices.shape)
    case = case_of("eig", dtype)
    device.run(case, [values, vectors, info], values, vectors, info, source)
    found, columns = values.read().astype(np.complex128), wide(vectors)
    assert_near(case, matrices @ columns, columns * found[:, None, :])
    assert_near(case, np.linalg.norm(columns, axis=1)[:, None], np.ones((BATCH, 1, size)))
    alone = device.array(of_out, (BATCH, size))
    again = info_of(device)
    device.run(case, [alone, None, again], alone, None, again, source)
    assert_near(case, alone.read().sum(1)[:, None, None], found.sum(1)[:, None, None])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_svd(device: Device, dtype: str, shape: tuple[int, int], full: bool) -> None:
    rows, columns = shape
    smaller = min(shape)
    matrices = uniform(dtype, (BATCH, rows, columns))
    source = device.array(dtype, matrices.shape, values=matrices)
    u = device.array(dtype, (BATCH, rows, rows if full else smaller))
    vh = device.array(dtype, (BATCH, columns if full else smaller, columns))
    s, info = device.array(REAL[dtype], (BATCH, smaller)), info_of(device)
    case = case_of("svd", dtype, "full" if full else "thin")
    device.run(case, [u, s, vh, info], u, s, vh, info, source)
    left, values, right = wide(u), s.read(), wide(vh)
    assert (np.diff(values) <= 0).all()
    assert (values >= 0).all()
    scaled = left[:, :, :smaller] * values[:, None]
    assert_near(case, scaled @ right[:, :smaller], matrices)
    for ortho in (adjoint(left) @ left, right @ adjoint(right)):
        assert_near(case, ortho, np.broadcast_to(np.eye(ortho.shape[-1]), ortho.shape))
    alone = device.array(REAL[dtype], (BATCH, smaller))
    again = info_of(device)
    device.run(case, [None, alone, None, again], None, alone, None, again, source)
    assert_near(case, alone.read()[:, None], values[:, None])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", TYPES)
def test_singular_values_of_nan_and_infinity(device: Device, dtype: str, value: float) -> None:
    """The kernel ends and reports the matrix in info. The other matrices are not affected."""
    matrices = uniform(dtype, (BATCH, 5, 3))
    finite = device.array(dtype, matrices.shape, values=matrices)
    matrices[1, 2, 1] = value
    source = device.array(dtype, matrices.shape, values=matrices)
    case = case_of("svd", dtype)
    found = []
    for given in (source, finite):
        s, info = device.array(REAL[dtype], (BATCH, 3)), info_of(device)
        device.run(case, [None, s, None, info], None, s, None, info, given)
        found.append((s.read(), info.read()))
    assert found[0][1][1] != 0
    assert (found[0][1][[0, 2]] == 0).all()
    assert (found[0][0][[0, 2]] == found[1][0][[0, 2]]).all()
