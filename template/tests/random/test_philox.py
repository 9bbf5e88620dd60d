"""The bits themselves are those of Philox 4x32-10, as kernels.h defines them.

A device with a generator of its own draws other bits: such a device leaves this file out.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from backend import DEVICE
from support import needs

pytestmark = [needs(torch.int64, torch.float32), pytest.mark.usefixtures("native_random")]

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
LOW = 0xFFFFFFFF


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
    """Return `count` numbers of 64 bits from the position `offset`, in 32-bit numbers, on."""
    lanes = [lane for b in range((count + 1) // 2) for lane in philox(seed, offset // 4 + b)]
    pairs = zip(lanes[::2], lanes[1::2], strict=True)
    return np.array([high << 32 | low for low, high in pairs], dtype=np.uint64)[:count]


def draw(generator: torch.Generator, count: int) -> np.ndarray:
    bits = torch.empty(count, dtype=torch.int64, device=DEVICE)
    drawn = torch.ops.aten.random_(bits, -(2**63), None, generator=generator)
    return drawn.cpu().numpy().view(np.uint64)


def test_the_oracle_gives_the_published_vector() -> None:
    assert philox(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


@pytest.mark.parametrize("seed", [0, 1, 0x0123456789ABCDEF, 2**64 - 1])
@pytest.mark.parametrize("offset", [0, 4, 4 * 1000, 2**34 - 4])
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_bits(seed: int, offset: int, count: int) -> None:
    generator = torch.Generator(DEVICE).manual_seed(seed)
    generator.set_offset(offset)
    np.testing.assert_array_equal(draw(generator, count), expected_bits(seed, offset, count))


def test_draws_follow_each_other() -> None:
    generator = torch.Generator(DEVICE).manual_seed(5)
    for count in (1, 5, 8, 1):
        offset = generator.get_offset()
        np.testing.assert_array_equal(draw(generator, count), expected_bits(5, offset, count))
        assert generator.get_offset() > offset
