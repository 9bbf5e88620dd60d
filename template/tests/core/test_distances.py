"""cdist and pdist against the CPU, natively."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import assert_same, compare, compare_gradients, needs, sample

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

NORMS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("p", NORMS)
def test_cdist(p: float) -> None:
    def distances(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x1, x2, p)

    compare(distances, sample(3, 5, 4), sample(3, 6, 4, seed=1), **TOLERANCE)
    compare(distances, sample(2, 1, 5, 4), sample(3, 6, 4, seed=1), **TOLERANCE)
    for rows, columns in ((0, 4), (5, 0)):
        compare(distances, torch.empty(2, rows, columns), torch.empty(2, 3, columns))


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_cdist_by_matrices_and_without(mode: str) -> None:
    x1, x2 = sample(40, 8), sample(50, 8, seed=1)
    compare(lambda a, b: torch.cdist(a, b, compute_mode=mode), x1, x2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", NORMS)
def test_gradients_of_cdist_and_pdist(p: float) -> None:
    others = sample(6, 4, seed=1)
    compare_gradients(lambda x: torch.cdist(x, others.to(x.device), p), sample(5, 4))
    compare_gradients(lambda x: torch.cdist(others.to(x.device), x, p), sample(5, 4))
    compare_gradients(lambda x: torch.pdist(x, p), sample(5, 4))


@pytest.mark.parametrize("p", NORMS)
def test_pdist(p: float) -> None:
    for rows in (0, 1, 2, 7):
        compare(lambda x: torch.pdist(x, p), sample(rows, 3), **TOLERANCE)


def test_equal_rows_have_no_slope() -> None:
    for p in NORMS:
        compare_gradients(lambda x, p=p: torch.cdist(x, x.detach(), p), sample(4, 3))


def test_a_part_of_the_rows_at_a_time_gives_the_same() -> None:
    x1, x2 = sample(70, 600), sample(700, 600, seed=1)
    actual = torch.cdist(x1.to(DEVICE), x2.to(DEVICE), 1.0)
    assert_same(actual, torch.cdist(x1, x2, 1.0), rtol=1e-4, atol=1e-2)


def test_what_does_not_fit_is_refused() -> None:
    x = sample(3, 4).to(DEVICE)
    with pytest.raises(RuntimeError, match="same number of columns"):
        torch.cdist(x, x[:, :3])
    with pytest.raises(RuntimeError, match="non-negative p"):
        torch.cdist(x, x, -1.0)
    with pytest.raises(RuntimeError, match="only supports 2D"):
        torch.pdist(x[0])
