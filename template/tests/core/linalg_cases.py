"""Matrices, and what torch.linalg makes of them, for the tests of it.

Where signs and phases are free, what counts is what a decomposition makes of its matrix again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from support import sample
from torch import linalg

Function = Callable[..., Any]

CLOSE = {"rtol": 2e-3, "atol": 2e-3}


def still_there(name: str) -> dict[str, Function]:
    """Return a function that is deprecated, unless this PyTorch has it no more."""
    function: Function = getattr(torch, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(torch.eye(2))
        except RuntimeError:
            return {}
    return {f"torch.{name}": function}


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
    **still_there("qr"),
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
    **still_there("cholesky"),
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
