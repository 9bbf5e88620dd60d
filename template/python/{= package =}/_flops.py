"""Formulas of fused attention for ``torch.utils.flop_counter``, which has them for CUDA only."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, register_flop_formula


def register() -> None:
    """Register the formulas that PyTorch does not have."""
    aten: Any = torch.ops.aten
    forward = aten._scaled_dot_product_fused_attention_overrideable
    backward = aten._scaled_dot_product_fused_attention_overrideable_backward
    for operator, formula in ((forward, _forward), (backward, _backward)):
        if operator not in flop_registry:
            register_flop_formula(operator)(formula)


# Shapes are (batch, heads, tokens, width); keys and values may have fewer heads. As for CUDA,
# masked scores count.


def _forward(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    scores = 2 * query[0] * query[1] * query[2] * key[2]
    return int(scores * (query[3] + value[3]))


def _backward(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> int:
    """Count five products, with the recomputed scores: three of key width, two of value width."""
    scores = 2 * query[0] * query[1] * query[2] * key[2]
    return int(scores * (3 * query[3] + 2 * value[3]))
