"""torch.linalg and its older names against the CPU, natively.

Where signs and phases are free, what counts is what a decomposition makes of its matrix again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import (
    assert_same,
    compare,
    compare_gradients,
    natively,
    needs,
    run_python,
    sample,
    supported,
)
from torch import linalg

Function = Callable[..., Any]

pytestmark = needs(torch.float32, torch.int32, torch.int64)

DTYPES = supported(torch.float32, torch.float64, torch.complex64, torch.complex128)
BATCHES = [(), (3,), (2, 3), (0,)]
CLOSE = {"rtol": 2e-3, "atol": 2e-3}


def square(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Well-conditioned matrices."""
    values = sample(*shape, dtype=dtype, low=-1, high=1)
    return values + 2 * torch.eye(*shape[-2:], dtype=dtype)


def hermitian(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Positive definite ones."""
    values = sample(*shape, dtype=dtype, low=-1, high=1)
    return values @ values.mH + torch.eye(shape[-1], dtype=dtype)


def rows(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return sample(*shape, dtype=dtype, low=-1, high=1, seed=1)


def symmetric_values(x: torch.Tensor) -> Any:
    """What eigenvectors make of their matrix."""
    values, vectors = linalg.eigh(x)
    return values, vectors * values.unsqueeze(-2) @ vectors.mH


def triple(x: torch.Tensor, full: bool) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=full)
    count = s.shape[-1]
    return s, u[..., :count] * s.unsqueeze(-2) @ vh[..., :count, :], u.mH @ u, vh @ vh.mH


def eigen(x: torch.Tensor) -> Any:
    """Sums of powers of the eigenvalues, and what the vectors make of the matrix."""
    values, vectors = linalg.eig(x)
    matrix = vectors * values.unsqueeze(-2) @ linalg.inv(vectors)
    return values.sum(-1), values.square().sum(-1), matrix


def reflections(x: torch.Tensor) -> Any:
    factors, tau = torch.geqrf(x)
    q = linalg.householder_product(factors[..., : tau.shape[-1]], tau)
    return (
        factors,
        tau,
        q,
        torch.ormqr(factors, tau, x),
        torch.ormqr(factors, tau, x.mH, False, True),
    )


# From one matrix of any shape, of n by n, and of n by n Hermitian ones.
OF_ANY: dict[str, Function] = {
    "lu": linalg.lu,
    "lu_factor": linalg.lu_factor,
    "torch.lu": lambda x: torch.lu_unpack(*torch.lu(x)),
    "qr": linalg.qr,
    "qr, complete": lambda x: linalg.qr(x, "complete"),
    "qr, r": lambda x: linalg.qr(x, "r")[1],
    "torch.qr": torch.qr,
    "reflections": reflections,
    "svd": lambda x: triple(x, False),
    "svd, full": lambda x: triple(x, True),
    "svdvals": linalg.svdvals,
    "torch.svd": lambda x: torch.svd(x)[1],
    "pinv": linalg.pinv,
    "pinverse": torch.pinverse,
    "matrix_rank": linalg.matrix_rank,
    "norm, 2": lambda x: linalg.matrix_norm(x, 2),
    "norm, nuclear": lambda x: linalg.matrix_norm(x, "nuc"),
    "norm, fro": linalg.matrix_norm,
    "cond": linalg.cond,
}
OF_SQUARE: dict[str, Function] = {
    "inv": linalg.inv,
    "inv_ex": linalg.inv_ex,
    "inverse": torch.inverse,
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "matrix_exp": linalg.matrix_exp,
    "matrix_exp, large": lambda x: linalg.matrix_exp(x * 4),
    "matrix_power": lambda x: linalg.matrix_power(x, 5),
    "matrix_power, negative": lambda x: linalg.matrix_power(x, -3),
    "eig": eigen,
    "eigvals": lambda x: linalg.eigvals(x).sum(-1),
    "cond, 1": lambda x: linalg.cond(x, 1),
}
OF_HERMITIAN: dict[str, Function] = {
    "cholesky": linalg.cholesky,
    "cholesky, upper": lambda x: linalg.cholesky(x, upper=True),
    "cholesky_ex": linalg.cholesky_ex,
    "torch.cholesky": torch.cholesky,
    "cholesky_inverse": lambda x: torch.cholesky_inverse(linalg.cholesky(x)),
    "cholesky_inverse, upper": lambda x: torch.cholesky_inverse(linalg.cholesky(x).mH, upper=True),
    "eigh": symmetric_values,
    "eigvalsh": linalg.eigvalsh,
    "eigvalsh, upper": lambda x: linalg.eigvalsh(x, UPLO="U"),
    "ldl_factor": linalg.ldl_factor,
    "ldl_factor, hermitian": lambda x: linalg.ldl_factor(x, hermitian=True),
    "pinv, hermitian": lambda x: linalg.pinv(x, hermitian=True),
    "matrix_rank, hermitian": lambda x: linalg.matrix_rank(x, hermitian=True),
}
# Of a matrix and right-hand sides.
SOLVERS: dict[str, Function] = {
    "solve": linalg.solve,
    "solve, right": lambda a, b: linalg.solve(a, b.mT, left=False),
    "solve, vectors": lambda a, b: linalg.solve(a, b[..., 0]),
    "solve_ex": linalg.solve_ex,
    "lu_solve": lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b),
    "lu_solve, adjoint": lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True),
    "lu_solve, right": lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b.mT, left=False),
    "lu_solve, both": lambda a, b: linalg.lu_solve(
        *linalg.lu_factor(a), b.mT, left=False, adjoint=True
    ),
    "torch.lu_solve": lambda a, b: torch.lu_solve(b, *torch.linalg.lu_factor(a)),
    "solve_triangular": lambda a, b: linalg.solve_triangular(a, b, upper=True),
    "solve_triangular, lower": lambda a, b: linalg.solve_triangular(a, b, upper=False),
    "solve_triangular, right": lambda a, b: linalg.solve_triangular(
        a, b.mT, upper=True, left=False
    ),
    "solve_triangular, unit": lambda a, b: linalg.solve_triangular(
        a / 4, b, upper=True, unitriangular=True
    ),
    "solve_triangular, adjoint": lambda a, b: linalg.solve_triangular(a.mH, b, upper=True),
    "triangular_solve": lambda a, b: torch.triangular_solve(b, a),
    "triangular_solve, transposed": lambda a, b: torch.triangular_solve(b, a, transpose=True),
    "cholesky_solve": lambda a, b: torch.cholesky_solve(b, linalg.cholesky(a @ a.mH)),
    "cholesky_solve, upper": lambda a, b: torch.cholesky_solve(
        b, linalg.cholesky(a @ a.mH).mH, upper=True
    ),
    "ldl_solve": lambda a, b: linalg.ldl_solve(*linalg.ldl_factor(a @ a.mT), b),
    "ldl_solve, hermitian": lambda a, b: linalg.ldl_solve(
        *linalg.ldl_factor(a @ a.mH, hermitian=True), b, hermitian=True
    ),
}
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


def test_out() -> None:
    a, b = hermitian(2, 4, 4), rows(2, 4, 3)
    on_device = [x.to(DEVICE) for x in (a, b)]
    for function in (linalg.cholesky, linalg.inv, linalg.det, linalg.eigvalsh, linalg.svdvals):
        for out in (
            torch.empty(0, device=DEVICE),
            torch.zeros(*function(a).shape, 2, device=DEVICE)[..., 0],
        ):
            with natively():
                assert function(on_device[0], out=out) is out
            assert_same(out, function(a), **CLOSE)
    out = torch.empty(0, device=DEVICE)
    linalg.solve(*on_device, out=out)
    assert_same(out, linalg.solve(a, b), **CLOSE)
    outs = [torch.empty(0, device=DEVICE) for _ in range(3)]
    linalg.svd(on_device[0], out=tuple(outs))
    assert_same(outs[0] * outs[1].unsqueeze(-2) @ outs[2], a, **CLOSE)
    with pytest.raises(RuntimeError, match=r"(?i)dtype|type"):
        linalg.cholesky(on_device[0], out=torch.empty(0, dtype=torch.int32, device=DEVICE))


@pytest.mark.parametrize(
    "shape", [(0, 0), (3, 0, 0), (0, 3), (3, 0), (0, 3, 3), (2, 0, 3)], ids=str
)
def test_without_elements(shape: tuple[int, ...]) -> None:
    values = torch.empty(shape)
    for name in ("lu", "lu_factor", "qr", "qr, complete", "svdvals", "svd, full", "pinv"):
        compare(OF_ANY[name], values)
    if shape[-1] == shape[-2]:
        for name in ("inv", "det", "slogdet", "matrix_exp", "eigvals"):
            compare(OF_SQUARE[name], values)
        for name in ("cholesky", "cholesky_ex", "eigvalsh", "ldl_factor", "eigh"):
            compare(OF_HERMITIAN[name], values)
        for name in ("solve", "lu_solve", "solve_triangular", "cholesky_solve"):
            compare(SOLVERS[name], values, torch.empty(*shape[:-1], 2))


def test_inputs_of_any_layout_stay_as_they_are() -> None:
    base = hermitian(6, 12, 12).to(DEVICE)
    for view in (
        base,
        base.mT,
        base[::2, 2:9, 2:9],
        base[1:2].expand(4, -1, -1),
        base[:, 1::2, 1::2],
    ):
        before = base.clone()
        for name in ("cholesky", "eigh"):
            compare(OF_HERMITIAN[name], view.cpu(), **CLOSE)
            OF_HERMITIAN[name](view)
        for name in ("inv", "det", "eig"):
            OF_SQUARE[name](view)
        for name in ("lu", "qr", "svd"):
            OF_ANY[name](view)
        assert base.equal(before)


ERRORS: dict[str, Function] = {
    "cholesky": lambda x: linalg.cholesky(-x),
    "cholesky, of one matrix": lambda x: linalg.cholesky(-x[0]),
    "inv": lambda x: linalg.inv(x * 0),
    "solve": lambda x: linalg.solve(x * 0, x),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(x * 0),
    "lu without pivots": lambda x: linalg.lu_factor(x, pivot=False),
    "svd of NaN": lambda x: linalg.svdvals(x * torch.nan),
    "eig of infinity": lambda x: linalg.eigvals(x / 0) if False else linalg.eig(x / 0),
    "not square": lambda x: linalg.inv(x[:, :2]),
    "integers": lambda x: linalg.inv(x.to(torch.int64)),
    "shapes": lambda x: linalg.solve(x, x[:, :2]),
    "a driver": lambda x: linalg.lstsq(x, x, driver="gelsz"),
    "UPLO": lambda x: linalg.eigh(x, UPLO="X"),
    "a mode": lambda x: linalg.qr(x, "whole"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_the_cpus(name: str) -> None:
    values = hermitian(2, 3, 3)
    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises(RuntimeError) as caught:
            ERRORS[name](values.to(device))
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    if isinstance(errors[0], torch.linalg.LinAlgError):
        assert str(errors[0]) == str(errors[1])


def test_what_fails_without_an_exception_says_so() -> None:
    values = torch.stack([hermitian(4, 4), -hermitian(4, 4), hermitian(4, 4)])
    for device in ("cpu", DEVICE):
        assert linalg.cholesky_ex(values.to(device)).info.tolist() == [0, 1, 0]
        assert linalg.inv_ex(values.to(device) * 0).info.tolist() == [1, 1, 1]


def test_what_the_cpu_does_in_lower_precision_stays_the_fallbacks() -> None:
    """The family takes float32 and wider; narrower numbers go the way of other operators."""
    if torch.float16 not in supported():
        pytest.skip("generated without float16")
    values = sample(4, 3, dtype=torch.float16, low=-1, high=1)
    assert_same(
        linalg.svdvals(values.to(DEVICE)).float(),
        linalg.svdvals(values.float()),
        rtol=1e-2,
        atol=1e-2,
    )


def test_other_functions_of_torch_linalg() -> None:
    compare(lambda a, b: linalg.multi_dot([a, b, a]), rows(3, 4), rows(4, 3), **CLOSE)
    compare(
        lambda x: linalg.tensorinv(x, ind=1), sample(6, 2, 3, low=-1, high=1), rtol=1e-2, atol=1e-2
    )
    compare(linalg.tensorsolve, rows(6, 2, 3), rows(6), rtol=1e-2, atol=1e-2)
    compare(linalg.vander, rows(4), **CLOSE)
    compare(linalg.cross, rows(4, 3), rows(4, 3), **CLOSE)
    compare(linalg.vecdot, rows(4, 3), rows(4, 3), **CLOSE)
    compare(linalg.vector_norm, rows(4, 3), **CLOSE)
    compare(linalg.norm, rows(4, 3), **CLOSE)
    compare(linalg.diagonal, rows(4, 3))
    compare(linalg.matmul, rows(4, 3), rows(3, 4), **CLOSE)
    compare(torch.logdet, hermitian(3, 4, 4), **CLOSE)
    torch.manual_seed(0)
    with natively():
        torch.svd_lowrank(rows(9, 7).to(DEVICE), q=3)
        torch.pca_lowrank(rows(9, 7).to(DEVICE), q=3)
        torch.lobpcg(hermitian(9, 9).to(DEVICE), k=2)


def test_a_gaussian_process_is_fitted() -> None:
    """The marginal likelihood and its gradient, of which most is linear algebra."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        scale = x[0].exp()
        points = torch.linspace(0, 1, 20, device=x.device)
        distances = (points.unsqueeze(0) - points.unsqueeze(1)).square()
        kernel = torch.exp(-distances / scale) + x[1].exp() * torch.eye(20, device=x.device)
        factor = linalg.cholesky(kernel)
        solved = linalg.solve_triangular(factor, points.sin().unsqueeze(1), upper=False)
        return solved.square().sum() + 2 * factor.diagonal().log().sum()

    with natively():
        compare_gradients(loss, torch.tensor([-1.0, -2.0]), rtol=1e-3, atol=1e-3)


def test_factors_are_taken_on_the_stream_of_the_call() -> None:
    run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        stream = backend.Stream()
        x = torch.eye(64, device="{DEVICE}") * 4
        stream.wait_stream(backend.current_stream())
        with backend.stream(stream):
            factor = torch.linalg.cholesky_ex(x).L
        backend.current_stream().wait_stream(stream)
        assert factor.cpu().equal(torch.eye(64) * 2)
        """
    )
