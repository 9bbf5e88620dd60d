"""What the random operators draw: ranges, moments, distributions, layouts and refusals.

The oracles are scipy's distribution functions and, for arguments, the CPU. Seeds are fixed, so a test
passes always or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from backend import DEVICE, backend
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

# One call of every operator that fills a tensor of floating type.
FILLS: dict[str, Draw] = {
    **{name: draw for name, (draw, _) in CONTINUOUS.items()},
    "random": lambda t: t.random_(),
    "random_to": lambda t: t.random_(100),
    "random_from_to": lambda t: t.random_(-20, 100),
    "bernoulli": lambda t: t.bernoulli_(0.3),
    "bernoulli_of_tensor": lambda t: t.bernoulli_(
        torch.tensor(0.3, device=t.device).expand(t.shape)
    ),
    "geometric": lambda t: t.geometric_(0.2),
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

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("name", [name for name in CONTINUOUS if "cauchy" not in name])
    def test_mean_and_variance(self, name: str, dtype: torch.dtype) -> None:
        draw, distribution = CONTINUOUS[name]
        values = drawn(draw, dtype)
        mean, variance, _, excess = distribution.stats("mvsk")
        rounding = torch.finfo(dtype).eps
        error = 5 * math.sqrt(variance / COUNT) + rounding * (abs(mean) + math.sqrt(variance))
        assert values.mean() == pytest.approx(mean, abs=error)
        spread = 5 * math.sqrt((excess + 2) / COUNT) + 4 * rounding
        assert values.var() == pytest.approx(variance, rel=spread)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (2, 2.25), (1e-3, 2e-3), (-100, -99)])
    def test_uniform_stays_below_its_upper_bound(
        self, dtype: torch.dtype, bounds: tuple[float, float]
    ) -> None:
        low, high = (torch.tensor(bound, dtype=dtype).item() for bound in bounds)
        values = drawn(lambda t: t.uniform_(low, high), dtype)
        assert values.min() >= low
        assert values.max() < high
        assert len(np.unique(values)) > 1

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_uniform_between_equal_bounds_is_constant(self, dtype: torch.dtype) -> None:
        assert (drawn(lambda t: t.uniform_(1.5, 1.5), dtype) == 1.5).all()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_normal_without_deviation_is_constant(self, dtype: torch.dtype) -> None:
        assert (drawn(lambda t: t.normal_(1.5, 0), dtype) == 1.5).all()

    @pytest.mark.usefixtures("native_random")
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_exponential_is_positive_and_finite(self, dtype: torch.dtype) -> None:
        for rate in (1e-3, 1.0, 1e3):
            values = drawn(lambda t, rate=rate: t.exponential_(rate), dtype, 200_000)
            assert (values > 0).all()
            assert np.isfinite(values).all()

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_normal_is_finite(self, dtype: torch.dtype) -> None:
        assert np.isfinite(drawn(lambda t: t.normal_(), dtype, 200_000)).all()

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
    def test_neighbours_are_independent(self, dtype: torch.dtype) -> None:
        values = drawn(lambda t: t.normal_(), dtype)
        for distance in (1, 2, 3, 4, 8):
            correlation = np.corrcoef(values[:-distance], values[distance:])[0, 1]
            assert abs(correlation) < 5 / math.sqrt(COUNT)

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


@needs(torch.float32)
@pytest.mark.parametrize("draw", FILLS.values(), ids=FILLS.keys())
class TestEveryFill:
    @pytest.mark.usefixtures("native_random")
    def test_layout_does_not_matter(self, draw: Draw) -> None:
        base = torch.full((7, 9, 11), 0.5, device=DEVICE)
        views = {
            "transposed": base.permute(2, 0, 1),
            "offset": base[2:, 3:, 1:],
            "stepped": base[::2, ::3, ::5],
            "one element": base[3, 4, 5],
        }
        for view in views.values():
            base.fill_(0.5)
            before = base.cpu()
            backend.manual_seed(3)
            assert draw(view) is view
            backend.manual_seed(3)
            expected = draw(empty(*view.shape)).cpu()
            assert view.cpu().equal(expected)
            written = torch.zeros(7, 9, 11, dtype=torch.bool)
            written.as_strided(view.shape, view.stride(), view.storage_offset()).fill_(True)
            assert base.cpu()[~written].equal(before[~written])

    def test_nothing_to_draw_draws_nothing(self, draw: Draw) -> None:
        before = backend.get_rng_state()
        for shape in ((0,), (3, 0, 2)):
            assert draw(empty(*shape)).shape == shape
        assert backend.get_rng_state().equal(before)

    def test_overlapping_memory_is_refused(self, draw: Draw) -> None:
        with pytest.raises(RuntimeError, match="single memory location"):
            draw(empty(1).expand(5))

    def test_many_dimensions(self, draw: Draw) -> None:
        # More than the device library takes.
        values = draw(torch.full((50,), -7777.0, device=DEVICE).view(*[1] * 20, 50)).flatten().cpu()
        assert len(values.unique()) > 1
        assert not values.eq(-7777).any()

    def test_result_depends_only_on_seed_and_offset(self, draw: Draw) -> None:
        backend.manual_seed(3)
        empty(1000).uniform_()
        state = backend.get_rng_state()
        first = draw(empty(500)).cpu()
        second = draw(empty(500)).cpu()
        backend.set_rng_state(state)
        assert draw(empty(500)).cpu().equal(first)
        assert draw(empty(500)).cpu().equal(second)
        assert not first.equal(second)

    @pytest.mark.usefixtures("native_random")
    def test_device_draws_itself_and_the_cpu_sequence_stays(self, draw: Draw) -> None:
        before = torch.get_rng_state()
        backend.reset_fallback_stats()
        draw(empty(10))
        drawn_on_cpu = [name for name in backend.fallback_stats() if "copy" not in name]
        assert drawn_on_cpu == []
        assert torch.get_rng_state().equal(before)


REFUSED: dict[str, Draw] = {
    "uniform_ bounds": lambda t: t.uniform_(2, 1),
    "uniform_ range": lambda t: t.uniform_(-1e300, 1e300),
    "normal_ std": lambda t: t.normal_(0, -1),
    "exponential_ rate": lambda t: t.exponential_(0),
    "exponential_ negative": lambda t: t.exponential_(-1),
    "bernoulli_ above": lambda t: t.bernoulli_(1.5),
    "bernoulli_ below": lambda t: t.bernoulli_(-0.5),
    "bernoulli_ shape": lambda t: t.bernoulli_(torch.full((3,), 0.5, device=t.device)),
    "geometric_ zero": lambda t: t.geometric_(0),
    "geometric_ one": lambda t: t.geometric_(1),
    "cauchy_ sigma": lambda t: t.cauchy_(0, 0),
    "log_normal_ std": lambda t: t.log_normal_(0, 0),
    "random_ empty range": lambda t: t.random_(5, 5),
    "random_ reversed": lambda t: t.random_(5, 2),
    "random_ zero": lambda t: t.random_(0),
    "normal std": lambda t: torch.normal(t, -1.0),
    "normal std tensor": lambda t: torch.normal(0.0, t - 1),
    "native_dropout": lambda t: torch.native_dropout(t, 1.5, True)[0],
    "dropout": lambda t: torch.nn.functional.dropout(t, 1.5),
    "randperm negative": lambda t: torch.randperm(-1, device=t.device),
    "randint empty range": lambda t: torch.randint(3, 3, (2,), device=t.device),
}


@needs(torch.float32)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_refuses_what_the_cpu_refuses_with_its_words(call: Draw) -> None:
    tensor = torch.zeros(4)
    before = backend.get_rng_state()
    with pytest.raises((RuntimeError, ValueError)) as expected:
        call(tensor)
    with pytest.raises(expected.type) as actual:
        call(tensor.to(DEVICE))
    assert str(actual.value) == str(expected.value)
    assert backend.get_rng_state().equal(before)


IN_PLACE: dict[str, Draw] = {
    "uniform_": lambda t: t.uniform_(),
    "normal_": lambda t: t.normal_(),
    "exponential_": lambda t: t.exponential_(),
    "cauchy_": lambda t: t.cauchy_(),
    "log_normal_": lambda t: t.log_normal_(),
    "geometric_": lambda t: t.geometric_(0.5),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "bernoulli_ of tensor": lambda t: t.bernoulli_(torch.full((3,), 0.5, device=t.device)),
    "random_": lambda t: t.random_(),
    "random_ to": lambda t: t.random_(1),
    "random_ of int64": lambda t: torch.ops.aten.random_(t, -(2**63), None),
    "multinomial": lambda t: torch.multinomial(t, 1),
    "randperm": lambda t: torch.randperm(2, dtype=t.dtype, device=t.device),
}


@needs(torch.float32)
@pytest.mark.parametrize("dtype", supported())
@pytest.mark.parametrize("call", IN_PLACE.values(), ids=IN_PLACE.keys())
def test_dtypes_are_those_of_the_cpu(call: Draw, dtype: torch.dtype) -> None:
    tensor = torch.ones(3, dtype=dtype)
    try:
        result = call(tensor.clone())
    except RuntimeError:
        with pytest.raises(RuntimeError):
            call(tensor.to(DEVICE))
    else:
        on_device = call(tensor.to(DEVICE))
        assert on_device.dtype is result.dtype
        assert on_device.device.type == DEVICE


@needs(torch.int64)
def test_draws_never_overlap() -> None:
    backend.manual_seed(0)
    drawn: list[int] = []
    for size in (1, 2, 3, 4, 5, 31, 1, 1000, 7, 1):
        bits = torch.empty(size, dtype=torch.int64, device=DEVICE)
        drawn += torch.ops.aten.random_(bits, -(2**63), None).tolist()
    assert len(set(drawn)) == len(drawn)


@needs(torch.float64, torch.float32)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 1001])
def test_offset_covers_what_was_drawn(count: int) -> None:
    # Numbers of 64 bits need two of the 32-bit numbers that the offset counts.
    generator = torch.Generator(DEVICE)
    for dtype, each in ((torch.float32, 1), (torch.float64, 2)):
        before = generator.get_offset()
        torch.rand(count, dtype=dtype, device=DEVICE, generator=generator)
        assert generator.get_offset() - before >= count * each


@needs(torch.float32)
def test_streams_share_the_generator_of_their_device() -> None:
    backend.manual_seed(6)
    expected = [torch.rand(1000, device=DEVICE).cpu() for _ in range(4)]
    backend.manual_seed(6)
    streams = [backend.Stream() for _ in range(4)]
    drawn = []
    for stream in streams:
        with backend.stream(stream):
            drawn.append(torch.rand(1000, device=DEVICE))
    backend.synchronize()
    assert all(one.cpu().equal(other) for one, other in zip(drawn, expected, strict=True))


@needs(torch.float32)
def test_operators_without_a_kernel_follow_the_seed_of_the_device() -> None:
    rates = torch.full((100,), 50.0, device=DEVICE)
    cpu = torch.get_rng_state()
    backend.manual_seed(1)
    first = torch.poisson(rates).cpu()
    second = torch.poisson(rates).cpu()
    backend.manual_seed(1)
    assert torch.poisson(rates).cpu().equal(first)
    assert not second.equal(first)
    assert torch.get_rng_state().equal(cpu)
    assert first.mean().item() == pytest.approx(50, abs=5 * math.sqrt(50 / 100))
