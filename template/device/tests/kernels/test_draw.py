"""Random numbers of distributions whose parameters are arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels import tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray
from scipy import special, stats  # type: ignore[import-untyped]

SEED = 0x0123456789ABCDEF
OFFSET = 2**33 + 7
SAMPLES = 20_000
UNLIKELY = 1e-4
"""The probability below which a sample counts as wrong. Seeds are fixed."""

OPS = ("gamma", "dirichlet", "poisson", "binomial")


def draw(
    device: Device,
    op: str,
    out: Array,
    *parameters: Array,
    seed: int = SEED,
    offset: int = OFFSET,
    address: int = 0,
) -> Case:
    case = Case("draw", op, out.dtype, "contiguous")
    a, b = (*parameters, None)[:2]
    philox = device.api.PhiloxState(seed, offset, address)
    device.run(case, [out], device.api.DrawOp[op], out, a, b, more=[philox])
    return case


def constants(device: Device, dtype: str, count: int, *numbers: float) -> list[Array]:
    return [device.array(dtype, (count,), values=np.full(count, number)) for number in numbers]


def drawn(device: Device, op: str, dtype: str, *numbers: float, **more: Any) -> NDArray[Any]:
    out = device.array(dtype, (SAMPLES,))
    draw(device, op, out, *constants(device, dtype, SAMPLES, *numbers), **more)
    return np.asarray(out.read().astype(np.float64))


def parameters_of(device: Device, op: str, dtype: str, shape: tuple[int, ...]) -> list[Array]:
    random = rng("draw", op, shape)
    values = [random.uniform(0.25, 20, shape).round(1)]
    if op == "binomial":
        values = [values[0].round(), random.uniform(0, 1, shape)]
    return [device.array(dtype, shape, values=one) for one in values]


def counts_fit(sample: NDArray[Any], distribution: Any) -> bool:
    """Whether the frequencies of integers match the distribution."""
    low, high = distribution.ppf([0.001, 0.999])
    edges = np.unique(np.linspace(low, high, 40).round())
    below = np.concatenate([[0.0], distribution.cdf(edges), [1.0]])
    seen = np.histogram(sample, [-np.inf, *(edges + 0.5), np.inf])[0]
    expected = np.diff(below) * len(sample)
    few = expected < 5
    seen = np.append(seen[~few], seen[few].sum())
    expected = np.append(expected[~few], max(expected[few].sum(), 1e-9))
    return bool(stats.chisquare(seen, expected * (seen.sum() / expected.sum())).pvalue > UNLIKELY)


# --- Distributions ---


@pytest.mark.parametrize("concentration", [0.01, 0.3, 1.0, 2.5, 40.0, 1e6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma(device: Device, dtype: str, concentration: float) -> None:
    sample = drawn(device, "gamma", dtype, concentration)
    assert (sample >= tolerances.smallest_normal(DTYPES[dtype])).all()
    # For small concentrations, many numbers are the smallest one.
    above = sample[sample > 1e-30]
    tail = stats.gamma.cdf(1e-30, concentration)
    share = np.clip((stats.gamma.cdf(above, concentration) - tail) / (1 - tail), 0, 1)
    assert stats.kstest(share, stats.uniform.cdf).pvalue > UNLIKELY
    spread = (tail * (1 - tail) / SAMPLES) ** 0.5
    assert abs(len(above) / SAMPLES - (1 - tail)) <= 5 * spread


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["gamma", "poisson"])
def test_narrow_types(device: Device, op: str, dtype: str) -> None:
    sample = drawn(device, op, dtype, 6.0)
    assert abs(sample.mean() - 6) < 0.1
    assert abs(sample.var() - 6) < 0.4


@pytest.mark.parametrize("rate", [0.001, 0.5, 3.0, 9.99, 10.0, 11.0, 75.0, 3000.0, 2e5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_poisson(device: Device, dtype: str, rate: float) -> None:
    sample = drawn(device, "poisson", dtype, rate)
    assert (sample == sample.round()).all()
    assert counts_fit(sample, stats.poisson(float(np.asarray(rate).astype(dtype))))


@pytest.mark.parametrize(
    ("trials", "probability"),
    [
        (1.0, 0.25),
        (7.0, 0.5),
        (40.0, 0.9),
        (100.0, 0.125),
        (1000.0, 0.01),
        (5000.0, 0.375),
        (20000.0, 0.99),
        (2.0**23, 2.0**-19),
        (2.0**23, 2.0**-6),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binomial(device: Device, dtype: str, trials: float, probability: float) -> None:
    sample = drawn(device, "binomial", dtype, trials, probability)
    assert (sample == sample.round()).all()
    assert ((sample >= 0) & (sample <= trials)).all()
    exact = float(np.asarray(probability).astype(dtype))
    assert counts_fit(sample, stats.binom(int(trials), exact))


@pytest.mark.parametrize(
    ("op", "numbers", "mean", "deviation"),
    [
        ("poisson", (1e9,), 1e9, 1e9**0.5),
        ("poisson", (1e24,), 1e24, 1e12),
        ("binomial", (1e12, 0.5), 5e11, 5e5),
        ("binomial", (1e14, 0.9), 9e13, 3e6),
        ("binomial", (1e12, 1e-9), 1e3, 1e1 * 10**0.5),
        ("binomial", (1e300, 1e-299), 10, 10**0.5),
    ],
)
def test_poisson_and_binomial_with_large_parameters(
    device: Device, op: str, numbers: tuple[float, ...], mean: float, deviation: float
) -> None:
    scaled = (drawn(device, op, "float64", *numbers) - mean) / deviation
    assert abs(scaled.mean()) < 5 / SAMPLES**0.5
    assert abs(scaled.std() - 1) < 5 / SAMPLES**0.5
    if mean > 1e6:
        assert stats.kstest(scaled, stats.norm.cdf).pvalue > UNLIKELY


@pytest.mark.parametrize("scale", [0.001, 0.5, 1.0, 30.0, 1e9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dirichlet(device: Device, dtype: str, scale: float) -> None:
    """Each element of a row has a beta distribution."""
    rows = SAMPLES // 4
    concentrations = np.asarray([1.0, 2.0, 0.5, 4.0]) * scale
    a = device.array(dtype, (rows, 4), values=np.broadcast_to(concentrations, (rows, 4)))
    out = device.array(dtype, (rows, 4))
    draw(device, "dirichlet", out, a)
    sample = out.read().astype(np.float64)
    assert (np.abs(sample.sum(1) - 1) < 4 * np.finfo(dtype).eps).all()
    assert ((sample >= tolerances.smallest_normal(DTYPES[dtype])) & (sample < 1)).all()
    share = concentrations / concentrations.sum()
    variance = share * (1 - share) / (concentrations.sum() + 1)
    assert (np.abs(sample.mean(0) - share) <= 5 * np.sqrt(variance / rows)).all()
    if 0.1 < scale < 1e3:
        for i, concentration in enumerate(concentrations):
            beta = stats.beta(concentration, concentrations.sum() - concentration)
            assert stats.kstest(sample[:, i], beta.cdf).pvalue > UNLIKELY
    if scale < 0.01:  # almost all rows are almost one-hot
        assert (sample.max(1) > 0.9).mean() > 0.95


def test_dirichlet_with_long_rows(device: Device) -> None:
    a = device.array("float32", (3, 5000), values=np.full((3, 5000), 0.5))
    out = device.array("float32", (3, 5000))
    case = draw(device, "dirichlet", out, a)
    device.assert_within(case, out.read().sum(1, dtype=np.float64), np.ones(3), 1e-5)
    assert len(np.unique(out.read())) > 14_000


# --- Limits and wrong arguments ---


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("gamma", (np.inf,), np.inf),
        ("gamma", (0.0,), 2.0**-126),
        ("gamma", (-1.0,), np.nan),
        ("gamma", (np.nan,), np.nan),
        ("poisson", (0.0,), 0.0),
        ("poisson", (np.inf,), np.inf),
        ("binomial", (5.0, 0.0), 0.0),
        ("binomial", (5.0, -1.0), 0.0),
        ("binomial", (5.0, 1.0), 5.0),
        ("binomial", (5.0, 2.0), 5.0),
        ("binomial", (5.0, np.nan), np.nan),
        ("binomial", (np.nan, 0.5), np.nan),
        ("binomial", (np.inf, 0.5), np.inf),
        ("binomial", (0.0, 0.5), 0.0),
        ("binomial", (-3.0, 0.5), 0.0),
    ],
)
def test_limits(device: Device, op: str, numbers: tuple[float, ...], expected: float) -> None:
    out = device.array("float32", (99,))
    case = draw(device, op, out, *constants(device, "float32", 99, *numbers))
    device.assert_exact(case, out, np.full(99, expected))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((0.0, 0.0), (0.5, 0.5)),
        ((0.0, 1.0), (2.0**-126, 1 - 2.0**-24)),
        ((np.inf, 1.0), (1 - 2.0**-24, 2.0**-126)),
        ((np.nan, 1.0), (np.nan, np.nan)),
        ((1.0, -1.0), (np.nan, np.nan)),
    ],
)
def test_limits_of_a_row(
    device: Device, row: tuple[float, float], expected: tuple[float, float]
) -> None:
    a = device.array("float32", (1, 2), values=np.asarray([row]))
    out = device.array("float32", (1, 2))
    device.assert_exact(draw(device, "dirichlet", out, a), out, np.asarray([expected]))


@pytest.mark.parametrize("rate", [-1.0, np.nan, -np.inf])
def test_wrong_rates_are_reported(device: Device, rate: float) -> None:
    case = Case("draw", "poisson", "float32")
    rates, out = constants(device, "float32", 9, 1.0, 0.0)
    values = np.ones(9)
    values[7] = rate
    rates.set(values)
    code, philox = device.api.DrawOp.poisson, device.api.PhiloxState(1, 2)
    device.run_invalid(case, "invalid Poisson rate", code, out, rates, None, more=[philox])


# --- The sequence ---


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("skipped", [1, 6, 1024])
def test_each_element_has_its_own_sequence(device: Device, op: str, skipped: int) -> None:
    shape, rest = (2048, 3), (2048 - skipped, 3)
    whole, part = device.array("float32", shape), device.array("float32", rest)
    parameters = parameters_of(device, op, "float32", shape)
    draw(device, op, whole, *parameters)
    later = [device.array("float32", rest, values=one.values[skipped:]) for one in parameters]
    case = draw(device, op, part, *later, offset=OFFSET + 3 * skipped)
    device.assert_exact(case, part, whole.read()[skipped:])


@pytest.mark.parametrize("op", OPS)
def test_results_depend_on_the_state_only(device: Device, op: str) -> None:
    state = device.array("int64", (2,))
    parameters = parameters_of(device, op, "float32", (333, 3))
    results = []
    for seed, offset in [(1, 0), (2, 0), (1, 5000)]:
        by_value, by_address = (device.array("float32", (333, 3)) for _ in range(2))
        draw(device, op, by_value, *parameters, seed=seed, offset=offset + 7)
        state.set(np.asarray([seed, offset]))
        address = state.buffer.address
        draw(device, op, by_address, *parameters, seed=3, offset=7, address=address)
        assert (by_address.read() == by_value.read()).all()
        assert state.unchanged()
        results.append(by_value.read())
    assert (results[0] != results[1]).any()
    assert (results[0] != results[2]).any()


@pytest.mark.parametrize("op", ["gamma", "poisson"])
def test_neighbouring_elements_are_not_correlated(device: Device, op: str) -> None:
    sample = drawn(device, op, "float32", 2.5)
    for distance in (1, 2, 4):
        both = np.corrcoef(sample[:-distance], sample[distance:])[0, 1]
        assert abs(both) < 5 / SAMPLES**0.5


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", [(1,), (7,), (1025,), (2, 3, 5), ()])
def test_any_shape(device: Device, op: str, shape: tuple[int, ...]) -> None:
    if op == "dirichlet" and not shape:
        pytest.skip("no rows")
    out = device.array("float64", shape)
    draw(device, op, out, *parameters_of(device, op, "float64", shape))
    assert np.isfinite(out.read()).all()


# --- Gradients beyond the ranges of test_binary and test_ternary ---


def difference(
    inverse: Callable[[Any, Any], Any], share: Callable[[Any, Any], Any], a: Any, x: Any
) -> Any:
    """The derivative of a quantile with respect to `a`, by differences of fourth order."""
    p = share(a, x)
    step = a * 2.0**-9
    values = [inverse(a + k * step, p) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)


def gradient(device: Device, dtype: str, *values: NDArray[Any]) -> tuple[Case, Array]:
    """The gradient of a gamma draw for two arrays, of a beta draw for three."""
    arrays = [device.array(dtype, one.shape, values=one) for one in values]
    out = device.array(dtype, values[0].shape)
    if len(arrays) == 2:
        case = Case("binary", "gamma_grad", dtype, "contiguous")
        code, params = device.api.BinaryOp.gamma_grad, device.api.BinaryParams()
    else:
        case = Case("ternary", "dirichlet_grad", dtype, "contiguous")
        code, params = device.api.TernaryOp.dirichlet_grad, 0
    device.run(case, [out], code, out, *arrays, more=[params])
    return case, out


SHARES = np.asarray([1e-3, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999])


@pytest.mark.parametrize("a", [0.3, 0.7, 1.0, 2.0, 30.0, 500.0, 1999.0, 2001.0, 1e5, 1e8])
def test_gradients_of_gamma_draws(device: Device, a: float) -> None:
    x = special.gammaincinv(a, SHARES)
    expected = difference(special.gammaincinv, special.gammainc, a, x)
    case, out = gradient(device, "float64", np.full_like(x, a), x)
    device.assert_within(case, out.read(), expected, 1e-6 * np.abs(expected))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.3, 3.0),
        (3.0, 0.3),
        (0.5, 0.5),
        (1.0, 1.0),
        (2.0, 30.0),
        (2000.0, 1.0),
        (1.0, 2000.0),
        (1e5, 10.0),
        (3e3, 5e3),
        (2e6, 3e6),
    ],
)
def test_gradients_of_beta_draws(device: Device, a: float, b: float) -> None:
    x = special.betaincinv(a, b, SHARES)
    x = x[x < 0.9999]  # too few representable numbers near 1 for differences
    slope = difference(
        lambda a, p: special.betaincinv(a, b, p), lambda a, x: special.betainc(a, b, x), a, x
    )
    expected = slope / (1 - x)
    case, out = gradient(device, "float64", x, np.full_like(x, a), np.full_like(x, a + b))
    device.assert_within(case, out.read(), expected, 3e-6 * np.abs(expected))


@pytest.mark.parametrize("values", [(2.0, 0.0), (0.0, 2.0, 5.0), (1.0, 2.0, 5.0)], ids=str)
def test_gradients_at_the_ends_of_the_range(device: Device, values: tuple[float, ...]) -> None:
    case, out = gradient(device, "float32", *(np.full(5, value) for value in values))
    device.assert_exact(case, out, np.zeros(5))
