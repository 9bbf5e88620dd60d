"""cdist and pdist against the CPU, without fallbacks."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import assert_same, compare_gradients, needs, sample, supported_dtypes

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

NORMS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))


def test_the_gradient_of_equal_rows_is_zero() -> None:
    for p in NORMS:
        compare_gradients(lambda x, p=p: torch.cdist(x, x.detach(), p), sample(4, 3))


def test_large_inputs_are_computed_in_parts() -> None:
    x1, x2 = sample(70, 600), sample(700, 600, seed=1)
    actual = torch.cdist(x1.to(DEVICE), x2.to(DEVICE), 1.0)
    assert_same(actual, torch.cdist(x1, x2, 1.0), rtol=1e-4, atol=1e-2)


def test_wrong_arguments_are_refused() -> None:
    x = sample(3, 4).to(DEVICE)
    with pytest.raises(RuntimeError, match="same number of columns"):
        torch.cdist(x, x[:, :3])
    with pytest.raises(RuntimeError, match="non-negative p"):
        torch.cdist(x, x, -1.0)
    with pytest.raises(RuntimeError, match="only supports 2D"):
        torch.pdist(x[0])
    if torch.float64 in supported_dtypes():
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
            torch.cdist(x, x.double())
