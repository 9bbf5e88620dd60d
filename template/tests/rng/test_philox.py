"""Every operator draws the numbers that random.h derives from the bits of Philox 4x32-10.

device/tests/kernels tests their distribution without PyTorch. A device with another generator draws
other bits and leaves this file out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from backend import DEVICE
from support import FLOATING, INTEGERS, needs, supported

pytestmark = [needs(torch.int64, torch.float32), pytest.mark.usefixtures("native_random")]

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
LOW = 0xFFFFFFFF
SEED = 0x0123456789ABCDEF
COUNT = 1001
FLOATS = supported(FLOATING)


def philox(seed: int, block: int) -> tuple[int, int, int, int]:
    """Return the four 32-bit numbers of one block."""
    c0, c1, c2, c3 = block & LOW, block >> 32, 0, 0
    k0, k1 = seed & LOW, seed >> 32
    for _ in range(10):
        even, odd = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (odd >> 32) ^ c1 ^ k0, odd & LOW, (even >> 32) ^ c3 ^ k1, even & LOW
        k0, k1 = (k0 + INCREMENTS[0]) & LOW, (k1 + INCREMENTS[1]) & LOW
    return c0, c1, c2, c3


def expected_bits(seed: int, offset: int, count: int) -> np.ndarray:
    """Return `count` 64-bit numbers, starting at `offset`, which counts 32-bit numbers."""
    lanes = [lane for b in range((count + 1) // 2) for lane in philox(seed, offset // 4 + b)]
    pairs = zip(lanes[::2], lanes[1::2], strict=True)
    return np.array([high << 32 | low for low, high in pairs], dtype=np.uint64)[:count]


def draw(generator: torch.Generator, count: int) -> np.ndarray:
    bits = torch.empty(count, dtype=torch.int64, device=DEVICE)
    drawn = torch.ops.aten.random_(bits, -(2**63), None, generator=generator)
    return drawn.cpu().numpy().view(np.uint64)


def test_the_reference_gives_the_published_vector() -> None:
    assert philox(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


@pytest.mark.parametrize("seed", [0, 1, 0x0123456789ABCDEF, 2**64 - 1])
@pytest.mark.parametrize("offset", [0, 4, 4 * 1000, 2**34 - 4])
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_bits(seed: int, offset: int, count: int) -> None:
    generator = torch.Generator(DEVICE).manual_seed(seed)
    generator.set_offset(offset)
    np.testing.assert_array_equal(draw(generator, count), expected_bits(seed, offset, count))


def test_consecutive_draws_use_consecutive_offsets() -> None:
    generator = torch.Generator(DEVICE).manual_seed(5)
    for count in (1, 5, 8, 1):
        offset = generator.get_offset()
        np.testing.assert_array_equal(draw(generator, count), expected_bits(5, offset, count))
        assert generator.get_offset() > offset


# --- Numbers that are derived from the bits ---

Draw = Callable[[torch.Tensor], torch.Tensor]
Made = Callable[[np.ndarray], np.ndarray]


def drawn(draw: Draw, dtype: torch.dtype) -> np.ndarray:
    """Return the numbers drawn with SEED, as float64 or integers."""
    torch.manual_seed(SEED)
    values = draw(torch.empty(COUNT, dtype=dtype, device=DEVICE)).cpu()
    return values.to(torch.float64 if dtype.is_floating_point else dtype).numpy()


def lanes(dtype: torch.dtype, dropped: int) -> np.ndarray:
    """Return numbers in [0, 1): of 64 bits for float64, else of 32, without ``dropped`` bits."""
    if dtype is torch.float64:
        bits, width = expected_bits(SEED, 0, COUNT + 1), 64
    else:
        pairs = expected_bits(SEED, 0, COUNT // 2 + 1)
        bits, width = np.stack([pairs & LOW, pairs >> 32], 1).reshape(-1), 32
    return (bits >> dropped) * 2.0 ** (dropped - width)


def uniform(dtype: torch.dtype) -> np.ndarray:
    return lanes(dtype, 11 if dtype is torch.float64 else 8)[:COUNT]


def normal(dtype: torch.dtype) -> np.ndarray:
    half = 2.0 ** (-65 if dtype is torch.float64 else -33)
    first, second = (lanes(dtype, 0)[i : COUNT + 1 : 2] + half for i in (0, 1))
    radius, angle = np.sqrt(-2 * np.log(first)), 2 * np.pi * second
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return both.reshape(-1)[:COUNT]


def exponential(dtype: torch.dtype) -> np.ndarray:
    dropped, bits = (12, 52) if dtype is torch.float64 else (9, 23)
    return -np.log1p(-lanes(dtype, dropped)[:COUNT] - 0.5 * 2.0**-bits)


# An operator, the numbers that it uses, and a function that recovers these from its result.
CONTINUOUS: dict[str, tuple[Draw, Callable[[torch.dtype], np.ndarray], Made]] = {
    "uniform": (lambda t: t.uniform_(), uniform, lambda x: x),
    "uniform_from_to": (lambda t: t.uniform_(-3, 5), uniform, lambda x: (x + 3) / 8),
    "normal": (lambda t: t.normal_(), normal, lambda x: x),
    "normal_mean_std": (lambda t: t.normal_(2, 0.5), normal, lambda x: (x - 2) / 0.5),
    "exponential": (lambda t: t.exponential_(), exponential, lambda x: x),
    "exponential_rate": (lambda t: t.exponential_(4), exponential, lambda x: x * 4),
    "cauchy": (lambda t: t.cauchy_(), uniform, lambda x: np.arctan(x) / np.pi + 0.5),
    "cauchy_median_sigma": (
        lambda t: t.cauchy_(3, 0.5),
        uniform,
        lambda x: np.arctan((x - 3) / 0.5) / np.pi + 0.5,
    ),
    "log_normal": (
        lambda t: t.log_normal_(0.5, 0.25),
        normal,
        lambda x: (np.log(x) - 0.5) / 0.25,
    ),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws(name: str, dtype: torch.dtype) -> None:
    draw, made_of, back = CONTINUOUS[name]
    got, expected = back(drawn(draw, dtype)), made_of(dtype)
    close = np.isclose(got, expected, rtol=0.02, atol=0.04 if dtype.itemsize == 2 else 1e-4)
    # Numbers that would round to the upper bound become the lower bound.
    assert (close | ((made_of is uniform) & (expected > 0.99) & (got == 0))).all()


@pytest.mark.parametrize("dtype", supported(torch.complex64, torch.complex128))
def test_complex_draws(dtype: torch.dtype) -> None:
    for draw, made_of, scale in (
        (torch.randn, normal, math.sqrt(0.5)),
        (torch.rand, uniform, 1.0),
    ):
        torch.manual_seed(SEED)
        parts = torch.view_as_real(draw(COUNT // 2, dtype=dtype, device=DEVICE)).cpu().flatten()
        expected = made_of(parts.dtype)[: COUNT - 1] * scale
        np.testing.assert_allclose(parts.numpy(), expected, rtol=1e-3, atol=1e-5)


WHOLE: list[tuple[Draw, int, int]] = [
    (lambda t: t.random_(3, 9), 3, 9),
    (lambda t: t.random_(5), 0, 5),
    (lambda t: torch.randint(7, t.shape, dtype=t.dtype, device=DEVICE), 0, 7),
    (lambda t: torch.randint_like(t, 2, 7), 2, 7),
]


def assert_integers(draw: Draw, dtype: torch.dtype, low: int, high: int) -> None:
    """Check integers in [low, high)."""
    bits = expected_bits(SEED, 0, COUNT)
    expected = [low + (int(one) * (high - low) >> 64) for one in bits]
    assert drawn(draw, dtype).tolist() == expected


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS))
@pytest.mark.parametrize(("draw", "low", "high"), WHOLE)
def test_integers_between_bounds(draw: Draw, low: int, high: int, dtype: torch.dtype) -> None:
    assert_integers(draw, dtype, low, high)


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool))
def test_random_without_bounds_covers_the_range_of_the_dtype(dtype: torch.dtype) -> None:
    high = 2
    if dtype.is_floating_point:
        high = 2 ** (1 - round(math.log2(torch.finfo(dtype).eps))) + 1
    elif dtype is not torch.bool:
        high = torch.iinfo(dtype).max + 1
    assert_integers(lambda t: t.random_(), dtype, 0, high)


def full_range(low: int) -> Draw:
    return lambda t: torch.ops.aten.random_(t, low, None)


@pytest.mark.parametrize("dtype", supported(torch.uint8, torch.int8, torch.int16, torch.int32))
def test_random_covers_all_values_of_the_integer_dtype(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    assert_integers(full_range(info.min), dtype, info.min, info.max + 1)


@pytest.mark.parametrize("low", [2**63 - 2, 2**63 - 1, 0, -5, -(2**63) + 1])
def test_lower_bound_alone_reaches_the_largest_number(low: int) -> None:
    assert_integers(full_range(low), torch.int64, low, 2**63)


@pytest.mark.parametrize("bounds", [(-(2**63), 2**63 - 1), (-(2**63), 1 - 2**63), (0, 2**63 - 1)])
def test_extreme_bounds(bounds: tuple[int, int]) -> None:
    assert_integers(lambda t: t.random_(*bounds), torch.int64, *bounds)


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS))
def test_geometric(dtype: torch.dtype) -> None:
    """One plus the number of whole periods in an exponentially distributed time."""
    times = exponential(torch.float64 if dtype is torch.float64 else torch.float32)
    expected = np.floor(times / -np.log1p(-0.4)) + 1
    # Near a whole number of periods the result depends on rounding.
    assert (drawn(lambda t: t.geometric_(0.4), dtype) == expected).mean() > 0.99


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool))
@pytest.mark.parametrize("p", [0.0, 0.125, 0.75, 1.0])
def test_bernoulli(dtype: torch.dtype, p: float) -> None:
    np.testing.assert_array_equal(
        drawn(lambda t: t.bernoulli_(p), dtype), lanes(torch.float32, 0)[:COUNT] < p
    )


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS, torch.bool))
@pytest.mark.parametrize("p_dtype", FLOATS)
def test_bernoulli_of_tensors(dtype: torch.dtype, p_dtype: torch.dtype) -> None:
    p = torch.linspace(0, 1, COUNT, dtype=p_dtype)
    for given in (p, p.to(DEVICE)):
        got = drawn(lambda t, given=given: t.bernoulli_(given), dtype)  # type: ignore[misc]
        np.testing.assert_array_equal(got, uniform(p_dtype) < p.double().numpy())
