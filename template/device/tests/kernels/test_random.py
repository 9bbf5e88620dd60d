"""Random numbers: bit for bit as random.h defines them, and with the right distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, parameters, tolerances
from kernels.harness import DTYPES, Array, Device
from kernels.philox import philox
from kernels.support import Case
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

SEED = 0x0123456789ABCDEF
OFFSET = 2**33 + 7
FLOATING = oracle.FLOATING
SIZES = [1, 2, 5, 1023, 4099]


def lanes32(count: int) -> NDArray[np.uint64]:
    """One lane for each of `count` elements."""
    return philox(SEED, OFFSET, -(-count // 4)).reshape(-1)[:count]


def lanes64(count: int) -> NDArray[np.uint64]:
    """Two lanes for each element, the low one first."""
    pairs = philox(SEED, OFFSET, -(-count // 2)).reshape(-1, 2)
    return (pairs[:, 0] | pairs[:, 1] << np.uint64(32))[:count]


def draw(device: Device, op: str, out: Array, layout: str = "contiguous", **more: Any) -> Case:
    state = parameters.words({"state": "device" if more.get("address") else "host"})
    case = Case("random", op, out.dtype, layout, parameters=state)
    code = device.api.RandomOp[op]
    philox = device.api.PhiloxState(
        more.get("seed", SEED), more.get("offset", OFFSET), more.get("address", 0)
    )
    device.run(case, [out], code, out, more=[philox, more.get("a", 0), more.get("b", 1)])
    return case


def unit(dtype: str, count: int) -> NDArray[Any]:
    """The uniform numbers in [0, 1) from which `count` elements are made."""
    if dtype == "float64":
        return (lanes64(count) >> np.uint64(11)) * 2.0**-53
    return (lanes32(count) >> np.uint64(8)) * 2.0**-24


def uniform(dtype: str, count: int, a: float, b: float) -> NDArray[Any]:
    """The numbers in [a, b), rounded to `dtype`."""
    numbers = (a + unit(dtype, count) * (b - a)).astype(DTYPES[dtype]).astype(np.float64)
    return np.where(numbers >= b, a, numbers)


def test_the_tests_generator_matches_published_values() -> None:
    assert [hex(lane) for lane in philox(0, 0, 1)[0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]


@pytest.mark.parametrize("count", SIZES)
def test_bits(philox_device: Device, count: int) -> None:
    out = philox_device.array("int64", (count,))
    case = draw(philox_device, "bits", out)
    philox_device.assert_exact(case, out, lanes64(count).view(np.int64))


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dtype", FLOATING)
def test_uniform_between_0_and_1(philox_device: Device, dtype: str, count: int) -> None:
    out = philox_device.array(dtype, (count,))
    case = draw(philox_device, "uniform", out, a=0.0, b=1.0)
    philox_device.assert_exact(case, out, uniform(dtype, count, 0.0, 1.0))


def normal(dtype: str, count: int, a: float, b: float) -> NDArray[Any]:
    even = count + count % 2
    if dtype == "float64":
        centre = lanes64(even) * 2.0**-64 + 2.0**-65
    else:
        lanes = lanes32(even).astype(np.float32) * np.float32(2.0**-32)
        centre = (lanes + np.float32(2.0**-33)).astype(np.float64)
    radius = np.sqrt(-2 * np.log(centre[0::2]))
    angle = 2 * np.pi * centre[1::2]
    numbers = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
    return a + b * numbers[:count]


def exponential(dtype: str, count: int, a: float, b: float) -> NDArray[Any]:
    if dtype == "float64":
        interior = ((lanes64(count) >> np.uint64(12)) + 0.5) * 2.0**-52
    else:
        interior = ((lanes32(count) >> np.uint64(9)) + 0.5) * 2.0**-23
    return np.asarray(-np.log1p(-interior) / a)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize(
    ("numbers", "a", "b", "scale"),
    [
        (uniform, -3.0, 5.0, 8.0),
        (uniform, 0.5, 0.75, 1.25),
        (normal, 0.5, 2.0, 16.0),
        (exponential, 1.5, 1.0, 0.0),
    ],
)
def test_numbers(
    philox_device: Device,
    dtype: str,
    numbers: Callable[..., NDArray[Any]],
    a: float,
    b: float,
    scale: float,
) -> None:
    out = philox_device.array(dtype, (4099,))
    case = draw(philox_device, numbers.__name__, out, a=a, b=b)
    philox_device.assert_close(case, out, numbers(dtype, 4099, a, b), scale=scale)


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_bernoulli(philox_device: Device, dtype: str) -> None:
    out = philox_device.array(dtype, (4099,))
    case = draw(philox_device, "bernoulli", out, a=0.3)
    number = lanes32(4099) * 2.0**-32
    expected = (number < 0.3).astype(DTYPES[dtype])
    if not philox_device.float64_arithmetic:  # in float32 the closest ones equal 0.3
        close = np.abs(number - 0.3) < 2.0**-23
        expected[close] = out.read()[close]
    philox_device.assert_exact(case, out, expected)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int64", -(2**63), 2**63 - 1),
        ("int64", 2**62, 2**62 + 3),
        ("int32", -(2**31), 2**31),
        ("uint8", 0, 256),
        ("bool", 0, 2),
        ("float32", 0, 2**24 + 1),
        ("bfloat16", -100, 100),
        ("complex64", 0, 9),
    ],
)
def test_integers(philox_device: Device, dtype: str, low: int, high: int) -> None:
    out = philox_device.array(dtype, (4099,))
    case = draw(philox_device, "integers", out, a=low, b=high)
    expected = [low + (int(bits) * (high - low) >> 64) for bits in lanes64(4099)]
    philox_device.assert_exact(case, out, np.asarray(expected))


@pytest.mark.parametrize("op", ["uniform", "normal", "exponential", "bernoulli", "integers"])
@pytest.mark.parametrize("place", [layouts.transposed, layouts.stepped, layouts.shuffled])
def test_elements_are_drawn_in_row_major_order(
    philox_device: Device, op: str, place: layouts.Placer
) -> None:
    more = {"a": 2, "b": 90} if op == "integers" else {"a": 0.25, "b": 0.75}
    plain = philox_device.array("float32", (17, 33))
    draw(philox_device, op, plain, **more)
    strided = philox_device.array("float32", (17, 33), place)
    case = draw(philox_device, op, strided, layout=place.__name__, **more)
    philox_device.assert_exact(case, strided, plain.read())


@pytest.mark.parametrize("op", ["uniform", "normal", "exponential"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_offset_counts_blocks(philox_device: Device, op: str, dtype: str) -> None:
    whole, tail = (philox_device.array(dtype, (count,)) for count in (1000, 900))
    per_block = 2 if dtype == "float64" else 4
    draw(philox_device, op, whole, a=1.0, b=2.0)
    case = draw(philox_device, op, tail, a=1.0, b=2.0, offset=OFFSET + 100 // per_block)
    philox_device.assert_exact(case, tail, whole.read()[100:])


# --- Tests for any generator ---

SAMPLES = 100_000
DISTRIBUTIONS: dict[str, tuple[dict[str, Any], Any]] = {
    "uniform": ({"a": -1.0, "b": 3.0}, stats.uniform(-1.0, 4.0)),
    "normal": ({"a": 1.0, "b": 2.0}, stats.norm(1.0, 2.0)),
    "exponential": ({"a": 0.5}, stats.expon(scale=2.0)),
}


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("op", DISTRIBUTIONS)
def test_distribution(device: Device, op: str, dtype: str) -> None:
    params, distribution = DISTRIBUTIONS[op]
    out = device.array(dtype, (SAMPLES,))
    draw(device, op, out, **params)
    sample = out.read().astype(np.float64)
    assert abs(sample.mean() - distribution.mean()) < 5 * distribution.std() / SAMPLES**0.5 + 0.01
    assert abs(sample.std() / distribution.std() - 1) < 0.02
    if dtype in ("float32", "float64"):
        assert stats.kstest(sample, distribution.cdf).pvalue > 1e-4
    neighbours = np.corrcoef(sample[:-1], sample[1:])[0, 1]
    assert abs(neighbours) < 5 / SAMPLES**0.5


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (-1.0, 3.0), (0.1, 0.3), (1.0, 1.01)])
def test_uniform_stays_below_its_upper_bound(
    device: Device, dtype: str, a: float, b: float
) -> None:
    out = device.array(dtype, (SAMPLES,))
    draw(device, "uniform", out, a=a, b=b)
    sample = out.read().astype(np.float64)
    low = float(np.asarray(a).astype(DTYPES[dtype]))
    high = float(np.asarray(b).astype(np.float32 if dtype != "float64" else np.float64))
    assert low <= sample.min()
    assert sample.max() < high


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("rate", [1e-30, 1.0, 1e30])
def test_exponential_is_positive_and_finite(device: Device, dtype: str, rate: float) -> None:
    out = device.array(dtype, (SAMPLES,))
    draw(device, "exponential", out, a=rate)
    sample = out.read().astype(np.float64)
    assert (sample > 0).all()
    assert sample.max() <= tolerances.largest(DTYPES[dtype])


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_bernoulli_has_the_given_probability(device: Device, probability: float) -> None:
    out = device.array("uint8", (SAMPLES,))
    draw(device, "bernoulli", out, a=probability)
    sample = out.read()
    assert set(np.unique(sample)) <= {0, 1}
    spread = 5 * (probability * (1 - probability) / SAMPLES) ** 0.5
    assert abs(sample.mean() - probability) <= spread


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 4), (0, 100)])
def test_integers_are_equally_frequent(device: Device, low: int, high: int) -> None:
    out = device.array("int64", (SAMPLES,))
    draw(device, "integers", out, a=low, b=high)
    values, counts = np.unique(out.read(), return_counts=True)
    assert list(values) == list(range(low, high))
    assert high - low == 1 or stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("op", ["uniform", "normal", "bernoulli", "exponential", "integers"])
def test_results_depend_on_the_state_only(device: Device, op: str) -> None:
    more = {"a": 0, "b": 1000} if op == "integers" else {"a": 0.5, "b": 0.75}
    state = device.array("int64", (2,))
    states = [(1, 0), (2, 0), (1, 5000)]
    drawn = []
    for seed, offset in states:
        out = device.array("float32", (999,))
        draw(device, op, out, seed=seed, offset=offset + 7, **more)
        drawn.append(out.read())
    assert (drawn[0] != drawn[1]).any()
    assert (drawn[0] != drawn[2]).any()
    for (seed, offset), expected in zip(states, drawn, strict=True):
        state.set(np.asarray([seed, offset]))
        out = device.array("float32", (999,))
        draw(device, op, out, seed=3, offset=7, address=state.buffer.address, **more)
        assert (out.read() == expected).all()
        assert state.unchanged()


def test_the_increment_covers_all_numbers_of_a_call(device: Device) -> None:
    for count in (1, 2, 3, 4, 5, 1023):
        assert device.api.philox_increment(count) * 2 >= count
