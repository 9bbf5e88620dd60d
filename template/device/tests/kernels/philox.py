"""Philox 4x32-10, as random.h uses it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def philox(seed: int, block: int, blocks: int) -> NDArray[np.uint64]:
    """The lanes of consecutive blocks, one block per row."""
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    counter = np.arange(block, block + blocks, dtype=np.uint64)
    lanes = [counter & mask, counter >> shift, np.zeros_like(counter), np.zeros_like(counter)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first = lanes[0] * np.uint64(0xD2511F53)
        second = lanes[2] * np.uint64(0xCD9E8D57)
        lanes = [
            (second >> shift) ^ lanes[1] ^ np.uint64(key[0]),
            second & mask,
            (first >> shift) ^ lanes[3] ^ np.uint64(key[1]),
            first & mask,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(lanes, axis=1)
