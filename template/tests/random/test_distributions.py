"""What the random operators draw: ranges, moments and distributions.

The oracles are scipy's distribution functions. Seeds are fixed, so a test passes always or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from backend import DEVICE
from scipy import stats
from support import FLOATING, INTEGERS, needs, supported

COUNT = 20_000
FLOATS = supported(FLOATING)
NUMBERS = supported(FLOATING, INTEGERS)
COMPLEX = supported(torch.complex64, torch.complex128)
SEEDS = (0, 1, 2**63 + 5)
UNLIKELY = 1e-4
"""The probability below which a result counts as not of the distribution."""

Draw = Callable[[torch.Tensor], torch.Tensor]

CONTINUOUS: dict[str, tuple[Draw, Any]] = {
    "uniform": (lambda t: t.uniform_(), stats.uniform()),
    "uniform_from_to": (lambda t: t.uniform_(-3, 5), stats.uniform(-3, 8)),
    "normal": (lambda t: t.normal_(), stats.norm()),
    "normal_mean_std": (lambda t: t.normal_(2, 0.5), stats.norm(2, 0.5)),
    "exponential": (lambda t: t.exponential_(), stats.expon()),
    "exponential_rate": (lambda t: t.exponential_(4), stats.expon(scale=0.25)),
    "cauchy": (lambda t: t.cauchy_(), stats.cauchy()),
    "cauchy_median_sigma": (lambda t: t.cauchy_(3, 0.5), stats.cauchy(3, 0.5)),
    "log_normal": (lambda t: t.log_normal_(0.5, 0.25), stats.lognorm(0.25, scale=math.exp(0.5))),
}


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=DEVICE)


def drawn(draw: Draw, dtype: torch.dtype, count: int = COUNT) -> np.ndarray:
    values = draw(empty(count, dtype=dtype)).cpu()
    return values.to(torch.float64 if dtype.is_floating_point else dtype).numpy()


def frequencies_fit(values: np.ndarray, expected: dict[int, float]) -> bool:
    """Return whether the values are as often as expected, and nothing else occurs."""
    counts = np.array([(values == value).sum() for value in expected])
    if counts.sum() != len(values):
        return False
    if len(expected) == 1:
        return True
    probabilities = np.array(list(expected.values())) * len(values)
    return bool(stats.chisquare(counts, probabilities).pvalue > UNLIKELY)


class TestContinuous:
    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("name", CONTINUOUS)
    def test_values_follow_the_distribution(self, name: str, dtype: torch.dtype, seed: int) -> None:
        draw, distribution = CONTINUOUS[name]
        torch.manual_seed(seed)
        values = drawn(draw, dtype, 4000)
        assert stats.kstest(values, distribution.cdf).pvalue > UNLIKELY

    @pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize == 2])
    def test_uniform_reaches_what_a_narrow_type_tells_apart(self, dtype: torch.dtype) -> None:
        """Drawn with the bits of the type's fraction alone, a wide range would have few values."""
        mine, theirs = (
            torch.empty(10_000, dtype=dtype, device=device).uniform_(-100, 100).unique().numel()
            for device in (DEVICE, "cpu")
        )
        assert mine > 0.9 * theirs

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_exponential_of_an_infinite_rate_is_0(self, dtype: torch.dtype) -> None:
        assert (drawn(lambda t: t.exponential_(float("inf")), dtype) == 0).all()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_uniform_between_equal_bounds_is_constant(self, dtype: torch.dtype) -> None:
        assert (drawn(lambda t: t.uniform_(1.5, 1.5), dtype) == 1.5).all()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_normal_without_deviation_is_constant(self, dtype: torch.dtype) -> None:
        assert (drawn(lambda t: t.normal_(1.5, 0), dtype) == 1.5).all()

    @pytest.mark.parametrize("dtype", COMPLEX)
    def test_parts_of_complex_normals_share_the_variance(self, dtype: torch.dtype) -> None:
        values = torch.randn(COUNT, dtype=dtype, device=DEVICE).cpu().numpy()
        parts = np.stack([values.real, values.imag])
        assert parts.var(axis=1) == pytest.approx([0.5, 0.5], rel=0.06)
        assert abs(np.corrcoef(parts)[0, 1]) < 5 / math.sqrt(COUNT)

    @pytest.mark.parametrize("dtype", COMPLEX)
    def test_parts_of_complex_uniforms_are_uniform(self, dtype: torch.dtype) -> None:
        values = torch.rand(4000, dtype=dtype, device=DEVICE).cpu().numpy()
        for part in (values.real, values.imag):
            assert stats.kstest(part, stats.uniform.cdf).pvalue > UNLIKELY

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_normal_of_tensors(self, dtype: torch.dtype) -> None:
        mean = torch.tensor([[-100.0], [0.0], [100.0]], dtype=dtype, device=DEVICE)
        std = torch.tensor([1.0, 10.0], dtype=dtype, device=DEVICE).repeat_interleave(3000)
        torch.manual_seed(1)
        both = torch.normal(mean, std)
        assert both.shape == (3, 6000)
        assert both.dtype is dtype
        blocks = both.cpu().double().view(3, 2, 3000)
        expected = torch.tensor([-100.0, 0.0, 100.0]).double()
        torch.testing.assert_close(blocks.mean(2)[:, 0], expected, atol=0.3, rtol=0)
        torch.testing.assert_close(
            blocks.std(2)[:, 1], torch.full((3,), 10.0).double(), rtol=0.1, atol=0
        )
        assert torch.normal(mean, 0.0).cpu().equal(mean.cpu())
        shifted = torch.normal(5.0, torch.zeros(4, dtype=dtype, device=DEVICE))
        assert shifted.tolist() == [5.0] * 4
        out = empty(0, dtype=dtype)
        torch.normal(mean, std[:1], out=out)
        assert out.shape == (3, 1)


class TestIntegers:
    @pytest.mark.parametrize("dtype", NUMBERS)
    def test_range_is_drawn_evenly(self, dtype: torch.dtype) -> None:
        low = 3 if dtype is torch.uint8 else -3
        values = drawn(lambda t: t.random_(low, 9), dtype)
        assert frequencies_fit(values, {value: 1 / (9 - low) for value in range(low, 9)})

    @pytest.mark.parametrize("dtype", NUMBERS)
    def test_upper_bound_alone_starts_at_zero(self, dtype: torch.dtype) -> None:
        values = drawn(lambda t: t.random_(5), dtype)
        assert frequencies_fit(values, dict.fromkeys(range(5), 0.2))

    @pytest.mark.parametrize("dtype", supported(torch.bool))
    def test_booleans_are_even(self, dtype: torch.dtype) -> None:
        for draw in (lambda t: t.random_(), lambda t: t.random_(0, 2), lambda t: t.random_(2)):
            assert frequencies_fit(drawn(draw, dtype), {0: 0.5, 1: 0.5})
        assert not drawn(lambda t: t.random_(1), dtype).any()

    @pytest.mark.parametrize("dtype", NUMBERS)
    def test_without_bounds_every_number_from_zero_on_may_come(self, dtype: torch.dtype) -> None:
        largest = (
            2 ** (1 - round(math.log2(torch.finfo(dtype).eps)))
            if dtype.is_floating_point
            else torch.iinfo(dtype).max
        )
        values = drawn(lambda t: t.random_(), dtype).astype(np.float64)
        assert values.min() >= 0
        assert values.max() <= largest
        assert (values == np.floor(values)).all()
        # The numbers are whole, so their distribution is uniform up to one part in `largest`.
        assert stats.kstest(values[:4000], stats.uniform(-0.5, largest + 1).cdf).pvalue > UNLIKELY
        if largest < 1000:
            assert {0, largest} <= set(values)

    @pytest.mark.parametrize("dtype", supported(INTEGERS))
    def test_whole_type(self, dtype: torch.dtype) -> None:
        info = torch.iinfo(dtype)
        values = drawn(lambda t: torch.ops.aten.random_(t, info.min, None), dtype)
        unit = (values.astype(np.float64) - info.min) / (float(info.max) - float(info.min))
        assert stats.kstest(unit[:4000], stats.uniform.cdf).pvalue > UNLIKELY

    @needs(torch.int64)
    @pytest.mark.parametrize("low", [2**63 - 2, 2**63 - 1, 0, -5, -(2**63) + 1])
    def test_lower_bound_alone_reaches_the_largest_number(self, low: int) -> None:
        values = drawn(lambda t: torch.ops.aten.random_(t, low, None), torch.int64)
        assert values.min() >= low
        if low > 2**62:
            assert frequencies_fit(values, dict.fromkeys(range(low, 2**63), 1 / (2**63 - low)))
        else:
            assert values.max() > 2**62

    @needs(torch.int64)
    @pytest.mark.parametrize(
        "bounds", [(-(2**63), 2**63 - 1), (-(2**63), 1 - 2**63), (0, 2**63 - 1)]
    )
    def test_extreme_bounds(self, bounds: tuple[int, int]) -> None:
        low, high = bounds
        values = drawn(lambda t: t.random_(low, high), torch.int64)
        assert values.min() >= low
        assert values.max() < high
        if high - low > 1:
            unit = (values.astype(np.float64) - low) / (float(high) - float(low))
            assert stats.kstest(unit[:4000], stats.uniform.cdf).pvalue > UNLIKELY

    @pytest.mark.parametrize("dtype", supported(torch.float16, torch.bfloat16))
    def test_bound_that_the_type_rounds_up_is_not_reached(self, dtype: torch.dtype) -> None:
        high = 65504 if dtype is torch.float16 else 70000
        with pytest.warns(UserWarning, match="out of bounds"):
            values = drawn(lambda t: t.random_(0, high), dtype)
        assert values.max() < high

    @needs(torch.int64, torch.float32)
    def test_randint(self) -> None:
        values = torch.randint(-2, 4, (COUNT,), device=DEVICE).cpu().numpy()
        assert frequencies_fit(values, dict.fromkeys(range(-2, 4), 1 / 6))
        like = torch.randint_like(empty(100), 7)
        assert like.dtype is torch.float32
        assert set(like.tolist()) == set(range(7))

    @pytest.mark.parametrize("dtype", NUMBERS)
    def test_geometric(self, dtype: torch.dtype) -> None:
        values = drawn(lambda t: t.geometric_(0.4), dtype)
        assert values.min() == 1
        tail = 9
        expected = {k: stats.geom.pmf(k, 0.4) for k in range(1, tail)}
        expected[tail] = stats.geom.sf(tail - 1, 0.4)
        assert frequencies_fit(np.minimum(values, tail), expected)


class TestBernoulli:
    @pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool))
    @pytest.mark.parametrize("p", [0.0, 0.125, 0.75, 1.0])
    def test_is_one_with_the_probability_given(self, dtype: torch.dtype, p: float) -> None:
        values = drawn(lambda t: t.bernoulli_(p), dtype)
        assert set(np.unique(values)) <= {0, 1}
        assert values.mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / COUNT))

    @pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool))
    @pytest.mark.parametrize("p_dtype", FLOATS)
    def test_of_tensors(self, dtype: torch.dtype, p_dtype: torch.dtype) -> None:
        p = torch.tensor([[0.0], [0.25], [0.75], [1.0]], dtype=p_dtype, device=DEVICE)
        values = empty(4, COUNT, dtype=dtype).bernoulli_(p).cpu().double()
        assert set(values.unique().tolist()) == {0, 1}
        assert values.mean(1).tolist() == pytest.approx(
            [0, 0.25, 0.75, 1], abs=5 / math.sqrt(COUNT)
        )
        assert values[0].sum() == 0
        assert values[3].sum() == COUNT

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_functional_forms(self, dtype: torch.dtype) -> None:
        p = torch.full((3, 1000), 0.5, dtype=dtype, device=DEVICE)
        drawn = torch.bernoulli(p)
        assert drawn.dtype is dtype
        assert drawn.shape == p.shape
        assert 0 < drawn.sum() < drawn.numel()
        assert p.eq(0.5).all()
        assert torch.bernoulli(p, p=1.0).eq(1).all()
        out = empty(0, dtype=dtype)
        torch.bernoulli(torch.ones_like(p), out=out)
        assert out.shape == p.shape
        assert out.eq(1).all()

    @needs(torch.float32)
    def test_tensor_may_be_its_own_probability(self) -> None:
        tensor = torch.full((COUNT,), 0.25, device=DEVICE)
        tensor.bernoulli_(tensor)
        assert tensor.mean().item() == pytest.approx(0.25, abs=0.02)

    @needs(torch.float32)
    def test_probabilities_may_be_on_the_cpu(self) -> None:
        assert empty(3).bernoulli_(torch.tensor([0.0, 1.0, 0.0])).tolist() == [0, 1, 0]
