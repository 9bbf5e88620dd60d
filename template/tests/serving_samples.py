"""Arguments of the serving operators, on the CPU."""

from __future__ import annotations

import torch
from support import sample

BLOCKS, SIZE, HEADS = 12, 4, 2
QUERIES, KEYS = [1, 3, 0, 5], [9, 5, 2, 8]
SLOTS = torch.tensor([5, -1, 40, 0, 47])


def tokens(dtype: torch.dtype, count: int = 6) -> tuple[torch.Tensor, ...]:
    """Return keys and values, views of a projection, and two caches."""
    projected = sample(count, 4, HEADS, 8, dtype=dtype, low=-2, high=2)
    caches = [sample(BLOCKS, SIZE, HEADS, 8, dtype=dtype, seed=seed) for seed in (1, 2)]
    return projected[:, 1], projected[:, 3], *caches


def table(dtype: torch.dtype, width: int) -> torch.Tensor:
    """Return cosines and sines for 50 positions."""
    angles = torch.outer(torch.arange(50), 10.0 ** -torch.linspace(0, 3, width // 2))
    return torch.cat([angles.cos(), angles.sin()], 1).to(dtype)


def cached(dtype: torch.dtype, cache: torch.dtype | None = None) -> dict[str, torch.Tensor]:
    """Return the arguments of a call: blocks in random order, some of them unused."""
    blocks = sample(BLOCKS, 2, SIZE, HEADS, 8, dtype=dtype, low=-2, high=2).to(cache or dtype)
    most = 3
    names = torch.randperm(BLOCKS, generator=torch.Generator().manual_seed(1), dtype=torch.int32)
    return {
        "query": sample(sum(QUERIES), 4, 8, dtype=dtype, low=-2, high=2, seed=1),
        "key_cache": blocks[:, 0],
        "value_cache": blocks[:, 1],
        "cu_seqlens_q": torch.tensor([0, *QUERIES]).cumsum(0).int(),
        "seqused_k": torch.tensor(KEYS, dtype=torch.int32),
        "block_table": names[: most * len(KEYS)].reshape(len(KEYS), most).contiguous(),
    }
