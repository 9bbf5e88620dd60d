"""torch.linalg and its older names against the CPU, natively: values, strides, gradients."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.linalg_cases import (
    CLOSE,
    OF_ANY,
    OF_HERMITIAN,
    OF_SQUARE,
    SOLVERS,
    Function,
    hermitian,
    rows,
    square,
    symmetric_values,
)
from support import compare, compare_gradients, natively, needs, sample, supported
from torch import linalg

pytestmark = needs(torch.float32, torch.int32, torch.int64)

DTYPES = supported(torch.float32, torch.float64, torch.complex64, torch.complex128)
BATCHES = [(), (3,), (2, 3), (0,)]
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def close(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-9, "atol": 1e-9} if dtype.itemsize >= 16 or dtype is torch.float64 else CLOSE


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OF_ANY)
def test_of_matrices_of_any_shape(name: str, dtype: torch.dtype) -> None:
    for batch in BATCHES:
        for shape in ((4, 4), (6, 3), (2, 5), (1, 1)):
            compare(OF_ANY[name], rows(*batch, *shape, dtype=dtype), **close(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OF_SQUARE)
def test_of_square_matrices(name: str, dtype: torch.dtype) -> None:
    if name.startswith("eig") and not supported(dtype.to_complex()):
        pytest.skip("generated without the eigenvalues' dtype")
    for batch in BATCHES:
        for size in (1, 4, 7):
            compare(OF_SQUARE[name], square(*batch, size, size, dtype=dtype), **close(dtype))


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OF_HERMITIAN)
def test_of_hermitian_matrices(name: str, dtype: torch.dtype) -> None:
    for batch in BATCHES:
        for size in (1, 4, 7):
            compare(OF_HERMITIAN[name], hermitian(*batch, size, size, dtype=dtype), **close(dtype))


@pytest.mark.filterwarnings("ignore:torch.(lu_solve|triangular_solve) is deprecated")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SOLVERS)
def test_equations(name: str, dtype: torch.dtype) -> None:
    for batch in BATCHES:
        for columns in (1, 3):
            a, b = square(*batch, 5, 5, dtype=dtype), rows(*batch, 5, columns, dtype=dtype)
            compare(SOLVERS[name], a, b, **close(dtype))


@pytest.mark.parametrize("name", ["solve", "lu_solve", "solve_triangular", "cholesky_solve"])
def test_batches_that_are_broadcast(name: str) -> None:
    for left, right in (((), (3,)), ((2, 1), (3,)), ((3,), (2, 1)), ((3,), ())):
        a, b = square(*left, 4, 4), rows(*right, 4, 2)
        compare(SOLVERS[name], a, b, **CLOSE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("driver", DRIVERS)
def test_least_squares(driver: str, dtype: torch.dtype) -> None:
    for batch in ((), (3,), (2, 3)):
        for shape in ((6, 3), (3, 6), (4, 4)):
            a = rows(*batch, *shape, dtype=dtype)
            b = sample(*batch, shape[0], 2, dtype=dtype)
            compare(lambda x, y: linalg.lstsq(x, y, driver=driver), a, b, **close(dtype))


def test_least_squares_of_a_matrix_without_full_rank() -> None:
    a = rows(6, 2) @ rows(2, 4)
    for driver in DRIVERS[1:]:
        compare(
            lambda x, y, d=driver: linalg.lstsq(x, y, rcond=1e-4, driver=d), a, rows(6, 2), **CLOSE
        )
    compare(lambda x, y: linalg.lstsq(x, y).solution, rows(3, 5, 4), rows(3, 5), **CLOSE)


@pytest.mark.parametrize("name", [*OF_ANY, *OF_SQUARE, *OF_HERMITIAN])
def test_strides_are_the_cpus(name: str) -> None:
    function = (OF_ANY | OF_SQUARE | OF_HERMITIAN)[name]
    for values in (hermitian(3, 5, 5), hermitian(3, 5, 5).mT, hermitian(6, 9, 9)[::2, :5, :5]):
        expected, actual = function(values), function(values.to(DEVICE))
        if isinstance(expected, torch.Tensor):
            expected, actual = (expected,), (actual,)
        assert [x.stride() for x in actual] == [x.stride() for x in expected]


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("name", ["cholesky", "inv", "det", "solve", "qr", "eigh", "svd", "pinv",
                                  "matrix_exp", "slogdet", "lu", "eig", "lstsq",
                                  "cholesky_solve", "solve_triangular"])  # fmt: skip
def test_gradients(name: str) -> None:
    given = hermitian(2, 4, 4)
    right = rows(2, 4, 3)
    functions: dict[str, Function] = {
        "cholesky": lambda x: linalg.cholesky(x @ x.mT + 1e-1 * x),
        "inv": linalg.inv,
        "det": linalg.det,
        "solve": lambda x: linalg.solve(x, right.to(x.device)),
        "qr": lambda x: linalg.qr(x)[1].square(),
        "eigh": lambda x: symmetric_values(x + x.mT)[1].square(),
        "svd": lambda x: linalg.svd(x)[1],
        "pinv": linalg.pinv,
        "matrix_exp": lambda x: linalg.matrix_exp(x / 4),
        "slogdet": lambda x: linalg.slogdet(x)[1],
        "lu": lambda x: linalg.lu(x)[2],
        "eig": lambda x: linalg.eig(x)[0].abs().sort(-1)[0],
        "lstsq": lambda x: linalg.lstsq(x[..., :3], right.to(x.device)).solution,
        "cholesky_solve": lambda x: torch.cholesky_solve(right.to(x.device), linalg.cholesky(x)),
        "solve_triangular": lambda x: linalg.solve_triangular(x, right.to(x.device), upper=True),
    }
    with natively():
        compare_gradients(functions[name], given, rtol=1e-2, atol=1e-2)
