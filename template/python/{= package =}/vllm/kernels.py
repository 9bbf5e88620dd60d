# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""PyTorch replacements of vLLM's Triton kernels, with the arguments of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["OVERRIDES"]


def slot_mapping(
    num_tokens: int,
    max_num_tokens: int,
    query_start_loc_ptr: Tensor,
    positions_ptr: Tensor,
    block_table_ptr: Tensor,
    block_table_stride: int,
    slot_mapping_ptr: Tensor,
    KV_CACHE_BLOCK_SIZE: int,
    TOTAL_CP_WORLD_SIZE: int,
    TOTAL_CP_RANK: int,
    CP_KV_CACHE_INTERLEAVE_SIZE: int,
    PAD_ID: int,
    BLOCK_SIZE: int,
) -> None:
    """Write the slot of each token's key and value; padding gets ``PAD_ID``.

    Raises:
        NotImplementedError: with context parallelism.
    """
    if TOTAL_CP_WORLD_SIZE != 1:
        raise NotImplementedError("context parallelism is unsupported: it divides the cache")
    slot_mapping_ptr.fill_(PAD_ID)
    if num_tokens == 0:
        return
    tokens = torch.arange(num_tokens, device=positions_ptr.device)
    request = torch.searchsorted(query_start_loc_ptr[1:].long(), tokens, right=True)
    # Tokens after the last request are padding; their slots are set below.
    held = request < query_start_loc_ptr.numel() - 1
    request = request.clamp_(max=query_start_loc_ptr.numel() - 2)
    position = positions_ptr[:num_tokens]
    block = block_table_ptr.view(-1, block_table_stride)[
        request, position.div(KV_CACHE_BLOCK_SIZE, rounding_mode="floor")
    ]
    slot = block.long() * KV_CACHE_BLOCK_SIZE + position.remainder(KV_CACHE_BLOCK_SIZE)
    slot_mapping_ptr[:num_tokens] = torch.where(held, slot, PAD_ID)


OVERRIDES: dict[str, Callable[..., Any]] = {
    "vllm.v1.worker.block_table.ComputeSlotMappingKernel.kernel": slot_mapping,
}
