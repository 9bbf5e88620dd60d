"""Sorting and joining: ties, promotion and diagonals."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.comparisons import compare
from support import assert_same, natively, sample, supported


def test_joined_dtypes_are_promoted() -> None:
    compare(lambda x, y: torch.cat([x, y]), sample(3), torch.arange(4))


def test_torch_range_includes_its_end() -> None:
    with natively(), pytest.warns(UserWarning, match="deprecated"):
        found = torch.range(0, 2, 0.5, device=DEVICE)
    assert_same(found, torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0]))


def test_unique_keeps_every_nan() -> None:
    values = torch.tensor([1.0, float("nan"), 1.0, float("nan")])
    assert_same(values.to(DEVICE).unique(), values.unique())


@pytest.mark.native
class TestTies:
    """Equal elements keep their order, as on CUDA, also if the sort need not be stable."""

    VALUES = sample(8000, dtype=torch.int64, low=0, high=9)

    @pytest.mark.parametrize("descending", [False, True])
    @pytest.mark.parametrize("dtype", supported(torch.uint8, torch.int64, torch.float32))
    def test_sorts_are_stable(self, dtype: torch.dtype, descending: bool) -> None:
        values = self.VALUES.to(dtype)
        expected = values.sort(stable=True, descending=descending)
        here = values.to(DEVICE)
        for actual in (
            here.sort(descending=descending),
            torch.sort(here, stable=False, descending=descending),
        ):
            assert_same(actual[0], expected[0])
            assert_same(actual[1], expected[1])
        assert_same(here.argsort(descending=descending), expected[1])

    def test_topk_takes_the_first_of_equal_elements(self) -> None:
        values = self.VALUES.float()
        expected = values.sort(stable=True, descending=True)
        actual = values.to(DEVICE).topk(300)
        assert_same(actual[0], expected[0][:300])
        assert_same(actual[1], expected[1][:300])

    def test_sorts_of_strided_columns_are_stable(self) -> None:
        values = self.VALUES.float().view(40, 200)
        for table in (values.T, values[:, ::3], values.view(40, 20, 10).permute(2, 0, 1)):
            expected = table.sort(dim=0, stable=True)
            actual = table.to(DEVICE).sort(0)
            assert_same(actual[0], expected[0])
            assert_same(actual[1], expected[1])


@pytest.mark.parametrize(("diagonal", "upper_is_left"), [(2**63 - 1, False), (-(2**63), True)])
def test_diagonals_far_from_a_matrix(diagonal: int, upper_is_left: bool) -> None:
    matrix = sample(3, 4)
    whole, nothing = matrix, torch.zeros_like(matrix)
    upper, lower = (whole, nothing) if upper_is_left else (nothing, whole)
    assert_same(torch.triu(matrix.to(DEVICE), diagonal), upper)
    assert_same(torch.tril(matrix.to(DEVICE), diagonal), lower)
