"""Random choices: randperm and multinomial."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from backend import DEVICE, backend
from scipy import stats
from support import FLOATING, INTEGERS, needs, supported

pytestmark = needs(torch.float32, torch.int64)
UNLIKELY = 1e-4


class TestRandperm:
    @pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 4097])
    def test_is_a_permutation(self, count: int) -> None:
        drawn = torch.randperm(count, device=DEVICE)
        assert drawn.device.type == DEVICE
        assert drawn.dtype is torch.int64
        assert sorted(drawn.tolist()) == list(range(count))

    @pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS))
    def test_dtypes(self, dtype: torch.dtype) -> None:
        drawn = torch.randperm(100, dtype=dtype, device=DEVICE)
        assert drawn.dtype is dtype
        assert sorted(drawn.tolist()) == list(range(100))

    def test_permutations_are_equally_likely(self) -> None:
        drawn = [tuple(torch.randperm(3, device=DEVICE).tolist()) for _ in range(600)]
        _, counts = np.unique(np.array(drawn), axis=0, return_counts=True)
        assert len(counts) == 6
        assert stats.chisquare(counts).pvalue > UNLIKELY

    def test_out_is_resized_and_keeps_its_strides(self) -> None:
        out = torch.empty(0, dtype=torch.int64, device=DEVICE)
        assert torch.randperm(9, out=out) is out
        assert sorted(out.tolist()) == list(range(9))
        base = torch.full((18,), -1, device=DEVICE)
        torch.randperm(9, out=base[::2])
        assert sorted(base[::2].tolist()) == list(range(9))
        assert base[1::2].eq(-1).all()

    @pytest.mark.parametrize(
        ("dtype", "largest"),
        [
            (torch.uint8, 256),
            (torch.int8, 128),
            (torch.int16, 2**15),
            (torch.float16, 2**11 + 1),
        ],
    )
    def test_count_must_fit_the_dtype(self, dtype: torch.dtype, largest: int) -> None:
        if dtype not in supported():
            pytest.skip(f"generated without {dtype}")
        drawn = torch.randperm(largest, dtype=dtype, device=DEVICE)
        assert drawn.double().sum().item() == largest * (largest - 1) / 2
        with pytest.raises(RuntimeError, match=r"n is too large|n cannot be greater"):
            torch.randperm(largest + 1, dtype=dtype, device=DEVICE)


class TestMultinomial:
    weights = (1.0, 0.0, 3.0, 4.0, 0.0, 2.0, 0.0)

    @pytest.mark.parametrize("dtype", supported(FLOATING))
    @pytest.mark.parametrize("scale", [1.0, 0.01, 100.0])
    def test_frequencies_with_replacement(self, dtype: torch.dtype, scale: float) -> None:
        weights = (torch.tensor(self.weights) * scale).to(dtype)
        drawn = torch.multinomial(weights.to(DEVICE), 20_000, replacement=True).cpu()
        self.check_frequencies(drawn, weights)

    @pytest.mark.parametrize("dtype", supported(FLOATING))
    def test_frequencies_of_single_draws(self, dtype: torch.dtype) -> None:
        weights = torch.tensor(self.weights, dtype=dtype)
        rows = weights.expand(20_000, -1).contiguous().to(DEVICE)
        self.check_frequencies(torch.multinomial(rows, 1).cpu().flatten(), weights)

    def check_frequencies(self, drawn: torch.Tensor, weights: torch.Tensor) -> None:
        assert drawn.dtype is torch.int64
        counts = drawn.bincount(minlength=len(weights)).numpy()
        expected = weights.double().numpy() / weights.double().sum().item()
        assert (counts[expected == 0] == 0).all()
        likely = expected > 0
        assert stats.chisquare(counts[likely], expected[likely] * len(drawn)).pvalue > UNLIKELY

    def test_without_replacement_no_index_repeats(self) -> None:
        weights = torch.rand(50, 30, device=DEVICE)
        drawn = torch.multinomial(weights, 30).cpu()
        assert drawn.sort(1).values.equal(torch.arange(30).expand(50, -1))

    def test_heavier_categories_come_first(self) -> None:
        weights = torch.tensor([1.0, 1000.0, 1.0]).expand(1000, -1).contiguous().to(DEVICE)
        drawn = torch.multinomial(weights, 2).cpu()
        assert (drawn[:, 0] == 1).double().mean() > 0.98
        others = (drawn[:, 1] == 0).double().mean().item()
        assert others == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / 1000))

    @pytest.mark.parametrize("replacement", [False, True])
    def test_rows_have_their_own_weights(self, replacement: bool) -> None:
        weights = torch.eye(4, device=DEVICE)
        count = 3 if replacement else 1
        drawn = torch.multinomial(weights, count, replacement=replacement)
        assert drawn.cpu().equal(torch.arange(4).unsqueeze(1).expand(-1, count))

    @pytest.mark.usefixtures("native_random")
    @pytest.mark.parametrize("replacement", [False, True])
    def test_results_do_not_depend_on_strides(self, replacement: bool) -> None:
        weights = torch.rand(30, 4, device=DEVICE).t()
        backend.manual_seed(2)
        first = torch.multinomial(weights, 5, replacement=replacement).cpu()
        backend.manual_seed(2)
        again = torch.multinomial(weights.contiguous(), 5, replacement=replacement)
        assert again.cpu().equal(first)

    @pytest.mark.parametrize("replacement", [False, True])
    def test_out(self, replacement: bool) -> None:
        weights = torch.rand(3, 4, device=DEVICE)
        out = torch.empty(0, dtype=torch.int64, device=DEVICE)
        assert torch.multinomial(weights, 2, replacement=replacement, out=out) is out
        assert out.shape == (3, 2)
        assert (out.ge(0) & out.lt(4)).all()

    @pytest.mark.parametrize("replacement", [False, True])
    @pytest.mark.parametrize(
        "weights",
        [[1.0, -1.0], [1.0, math.nan], [1.0, math.inf], [0.0, 0.0], [[1.0, 1.0], [0.0, 0.0]]],
        ids=["negative", "nan", "inf", "zero", "zero_row"],
    )
    def test_invalid_weights_are_refused_as_on_the_cpu(
        self, weights: list[float], replacement: bool
    ) -> None:
        tensor = torch.tensor(weights)
        with pytest.raises(RuntimeError) as expected:
            torch.multinomial(tensor, 1, replacement=replacement)
        # The device raises later, as for an index out of bounds.
        with pytest.raises(RuntimeError) as actual:
            torch.multinomial(tensor.to(DEVICE), 1, replacement=replacement).cpu()
        assert str(expected.value) in str(actual.value)
        # With several draws ATen uses another path.
        with pytest.raises(RuntimeError, match=r"probability tensor|invalid multinomial"):
            torch.multinomial(tensor.to(DEVICE), 2, replacement=True)

    @pytest.mark.parametrize("count", [0, -1, 4])
    def test_invalid_counts_are_refused_as_on_the_cpu(self, count: int) -> None:
        with pytest.raises(RuntimeError) as expected:
            torch.multinomial(torch.ones(3), count)
        with pytest.raises(RuntimeError) as actual:
            torch.multinomial(torch.ones(3, device=DEVICE), count)
        assert str(actual.value) == str(expected.value)

    def test_many_categories(self) -> None:
        weights = torch.zeros(100_000)
        weights[12_345] = weights[99_999] = 1
        drawn = torch.multinomial(weights.to(DEVICE), 1000, replacement=True)
        assert set(drawn.tolist()) == {12_345, 99_999}

    @pytest.mark.parametrize("replacement", [False, True])
    @pytest.mark.parametrize("dtype", supported(FLOATING))
    def test_a_weight_of_zero_is_never_chosen(self, dtype: torch.dtype, replacement: bool) -> None:
        least = torch.finfo(dtype).smallest_normal / 2 if dtype.itemsize > 2 else 1e-7
        for weights in (
            [0.0, 0.0, 1.0, 0.0],
            [0.0, least, 0.0, 0.0],
            [0.0, 1.0, least, 0.0],
            [1.0] + [0.0] * 1000 + [1.0] + [0.0] * 1000,
        ):
            row = torch.tensor(weights, dtype=dtype, device=DEVICE)
            positive = int(row.cpu().gt(0).sum())
            table = row.expand(500, len(weights))
            for count in {1, positive if not replacement else 20}:
                drawn = torch.multinomial(table, count, replacement)
                assert table.gather(1, drawn).cpu().gt(0).all()
