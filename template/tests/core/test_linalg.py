"""torch.linalg beyond the conformance tests: signs of vectors, errors, programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from core.comparisons import compare
from support import assert_same, compare_gradients, natively, needs, run_python, sample, supported
from torch import linalg

pytestmark = needs(torch.float32, torch.int32, torch.int64)

Function = Callable[..., Any]

CLOSE = {"rtol": 2e-3, "atol": 2e-3}
DTYPES = supported(torch.float32, torch.float64, torch.complex64, torch.complex128)


def close(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-9, "atol": 1e-9} if dtype.itemsize >= 16 or dtype is torch.float64 else CLOSE


def rows(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return sample(*shape, dtype=dtype, low=-1, high=1, seed=1)


def hermitian(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return positive definite matrices."""
    values = sample(*shape, dtype=dtype, low=-1, high=1)
    return values @ values.mH + torch.eye(shape[-1], dtype=dtype)


# --- Matrices that vectors give: the signs and phases of vectors are arbitrary ---


def eigh(x: torch.Tensor) -> Any:
    values, vectors = linalg.eigh(x + x.mH)
    return values, vectors * values.unsqueeze(-2) @ vectors.mH


def svd(x: torch.Tensor, full: bool = False) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=full)
    count = s.shape[-1]
    return s, u[..., :count] * s.unsqueeze(-2) @ vh[..., :count, :], u.mH @ u, vh @ vh.mH


def eig(x: torch.Tensor) -> Any:
    values, vectors = linalg.eig(x)
    matrix = vectors * values.unsqueeze(-2) @ linalg.inv(vectors)
    return values.sum(-1), values.square().sum(-1), matrix


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", [(), (2, 3), (0,)], ids=str)
def test_decompositions_reproduce_their_matrix(batch: tuple[int, ...], dtype: torch.dtype) -> None:
    for size in (1, 4, 7):
        values = hermitian(*batch, size, size, dtype=dtype)
        for function in (eigh, eig) if supported(dtype.to_complex()) else (eigh,):
            compare(function, values, **close(dtype))
    for shape in ((4, 4), (6, 3), (2, 5), (1, 1)):
        for full in (False, True):
            values = rows(*batch, *shape, dtype=dtype)
            compare(lambda x, full=full: svd(x, full), values, **close(dtype))


# --- Ranks and sizes ---


def test_least_squares_of_a_matrix_without_full_rank() -> None:
    a = rows(6, 2) @ rows(2, 4)
    for driver in ("gelsy", "gelsd", "gelss"):
        compare(
            lambda x, y, d=driver: linalg.lstsq(x, y, rcond=1e-4, driver=d), a, rows(6, 2), **CLOSE
        )
    compare(lambda x, y: linalg.lstsq(x, y).solution, rows(3, 5, 4), rows(3, 5), **CLOSE)


@needs(torch.float64)
def test_least_squares_into_an_empty_output_of_a_wider_dtype() -> None:
    def solve(a: torch.Tensor, b: torch.Tensor) -> Any:
        wide, rank = (
            torch.empty(0, dtype=t, device=a.device) for t in (torch.float64, torch.int64)
        )
        return linalg.lstsq(
            a, b, out=(wide, torch.empty_like(a[:0]), rank, torch.empty_like(a[:0]))
        )

    compare(lambda a, b: solve(a, b).solution, rows(5, 3), rows(5, 2), **CLOSE)


@pytest.mark.parametrize(("of", "other"), [((1, 0), (1, 0)), ((3, 0), (3, 2)), ((0, 3), (0, 2))])
@pytest.mark.parametrize("driver", ["gels", "gelsd"])
def test_least_squares_when_empty(driver: str, of: tuple[int, int], other: tuple[int, int]) -> None:
    compare(
        lambda a, b: linalg.lstsq(a, b, driver=driver).solution, torch.ones(of), torch.ones(other)
    )


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_eigenvalues_of_nonfinite_matrices_are_nan(value: float) -> None:
    """The CPU's LAPACK may end the process."""
    for dtype in DTYPES:
        assert (
            linalg.eigvals(torch.full((2, 3, 3), value, dtype=dtype, device=DEVICE)).isnan().all()
        )


# --- Errors ---


ERRORS: dict[str, Function] = {
    "cholesky": lambda x: linalg.cholesky(-x),
    "cholesky, of one matrix": lambda x: linalg.cholesky(-x[0]),
    "cholesky of NaN": lambda x: linalg.cholesky(x * torch.nan),
    "inv": lambda x: linalg.inv(x * 0),
    "solve": lambda x: linalg.solve(x * 0, x),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(x * 0),
    "lu without pivots": lambda x: linalg.lu_factor(x, pivot=False),
    "svd of NaN": lambda x: linalg.svdvals(x * torch.nan),
    "eigh of NaN": lambda x: linalg.eigh(x * torch.nan),
    "eig of infinity": lambda x: linalg.eig(x / 0),
    "not square": lambda x: linalg.inv(x[:, :2]),
    "integers": lambda x: linalg.inv(x.to(torch.int64)),
    "shapes": lambda x: linalg.solve(x, x[:, :2]),
    "a driver": lambda x: linalg.lstsq(x, x, driver="gelsz"),
    "rows of a batch": lambda x: linalg.lstsq(x[:1, :1, :1], x[0, :, :1]),
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


@pytest.mark.native
@pytest.mark.parametrize("of", [linalg.svd, linalg.svdvals, linalg.pinv, linalg.cond])
def test_decompositions_of_infinity_raise_an_error(of: Function) -> None:
    """The CPU's library raises an error or gives NaN, depending on sizes."""
    values = hermitian(3, 3).to(DEVICE)
    values[1, 2] = torch.inf
    with pytest.raises(linalg.LinAlgError, match="contained non-finite values"):
        of(values)


@pytest.mark.native
def test_eigenvalues_of_nan_are_nan() -> None:
    values = hermitian(2, 4, 4)
    values[1, 2, 2] = torch.nan
    found = linalg.eigvals(values.to(DEVICE)).cpu()
    assert found[0].sum().isclose(linalg.eigvals(values[0]).sum(), **CLOSE)
    assert found[1].isnan().any()


def test_failures_without_an_exception_are_in_info() -> None:
    values = torch.stack([hermitian(4, 4), -hermitian(4, 4), hermitian(4, 4)])
    for device in ("cpu", DEVICE):
        assert linalg.cholesky_ex(values.to(device)).info.tolist() == [0, 1, 0]
        assert linalg.inv_ex(values.to(device) * 0).info.tolist() == [1, 1, 1]


@pytest.mark.skipif(
    not hasattr(backend, "default_generators"), reason="generated without generators of the device"
)
def test_functions_that_begin_with_random_matrices() -> None:
    torch.manual_seed(0)
    with natively():
        wide, symmetric = rows(9, 7), hermitian(9, 9)
        for function, expected in (
            (torch.svd_lowrank, wide),
            (torch.pca_lowrank, wide - wide.mean(0)),
        ):
            u, s, v = function(wide.to(DEVICE), q=7)
            assert_same(u @ s.diag() @ v.mT, expected, rtol=1e-3, atol=1e-4)
        largest, _ = torch.lobpcg(symmetric.to(DEVICE), k=2)
        expected = linalg.eigvalsh(symmetric).flip(0)[:2]
        assert_same(largest, expected, rtol=1e-3, atol=1e-3)


def test_a_gaussian_process_is_fitted() -> None:
    """The marginal likelihood and its gradient, which are mostly linear algebra."""

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


def test_factorizations_run_on_the_current_stream() -> None:
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
