"""Functions for engines that serve language models: caches of keys and values, and more.

Each function is a thin one over an operator, ``torch.ops.<backend>.<name>``, whose names and tensors
are those of vLLM's. The device's kernels do the work. Unsupported calls run on the CPU, as do
tensors that are there. No operator has gradients.

Caches are ``(blocks, block size, kv heads, head size)``. Sequences of queries lie one after the
other, ``(tokens, heads, head size)``, and a block table says which blocks hold a sequence's keys.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from ._build import NAME

__all__: list[str] = []


def setup() -> None:
    """Tell PyTorch what the operators do without a kernel of the device."""
    from . import _serving_references

    _serving_references.register()


def _ops() -> Any:
    return getattr(torch.ops, NAME)


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> None:
    """Write the keys and values of new tokens, ``(tokens, kv heads, head size)``, into their slots.

    Slot ``s`` is row ``s % block size`` of block ``s // block size``; tokens of a negative slot, and
    those beyond the end of ``slot_mapping``, are skipped. Caches of float8 get ``key / k_scale``.
    """
    _ops().reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, k_scale, v_scale)


def rotary_embedding(
    positions: Tensor,
    query: Tensor,
    key: Tensor | None,
    head_size: int,
    cos_sin_cache: Tensor,
    is_neox: bool = True,
) -> None:
    """Turn each head of ``query`` and ``key`` by the angles of its token's position, in place.

    A row of ``cos_sin_cache`` has the cosines of a position and then the sines. Only the first
    elements of a head, as many as a row has, are turned: pairs ``(i, i + half)`` with ``is_neox``,
    otherwise neighbours.
    """
    _ops().rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox)


def fused_add_rms_norm(input: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> None:
    """``residual += input``, then ``input = rms_norm(residual) * weight``."""
    _ops().fused_add_rms_norm(input, residual, weight, epsilon)


def silu_and_mul(input: Tensor, out: Tensor | None = None) -> Tensor:
    """SiLU of the first half of the last dimension, times the second half."""
    return _gate("silu_and_mul", input, out)


def gelu_and_mul(input: Tensor, out: Tensor | None = None) -> Tensor:
    """GELU of the first half of the last dimension, times the second half."""
    return _gate("gelu_and_mul", input, out)


def gelu_tanh_and_mul(input: Tensor, out: Tensor | None = None) -> Tensor:
    """The same with the approximation by a hyperbolic tangent."""
    return _gate("gelu_tanh_and_mul", input, out)


def _gate(name: str, input: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        out = input.new_empty((*input.shape[:-1], *(size // 2 for size in input.shape[-1:])))
    getattr(_ops(), name)(out, input)
    return out


def attention_with_cache(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    cu_seqlens_q: Tensor,
    seqused_k: Tensor,
    block_table: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *,
    scale: float | None = None,
    causal: bool = True,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of sequences of queries over paged keys and values.

    Sequence ``b`` has the queries from ``cu_seqlens_q[b]`` to ``cu_seqlens_q[b + 1]`` and
    ``seqused_k[b]`` keys, in the blocks of ``block_table[b]``; its last query is at its last
    key. All three are int32. Beside the result it returns the logarithms of softmax's sums,
    ``(heads, tokens)``, with which partial results can be merged.
    """
    if out is None:
        out = query.new_empty((*query.shape[:2], *value_cache.shape[3:]))
    logsumexp = _ops().attention_with_cache(
        *(out, query, key_cache, value_cache, cu_seqlens_q, seqused_k, block_table),
        *(max_seqlen_q, max_seqlen_k, scale, causal, window[0], window[1], softcap),
        *(alibi_slopes, sinks, k_scale, v_scale),
    )
    return out, logsumexp


def top_k_top_p_sample(
    logits: Tensor,
    top_k: Tensor | None = None,
    top_p: Tensor | None = None,
    min_p: Tensor | None = None,
    temperature: Tensor | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw a token for each row of ``logits``.

    The logits are divided by ``temperature``, where 0 takes the greatest. Tokens that are less
    probable than ``min_p`` times the most probable one drop out, then all but the ``top_k`` most
    probable, then those behind the first that together reach ``top_p``. Each restriction has a
    number for each row.
    """
    tokens: Tensor = _ops().top_k_top_p_sample(logits, top_k, top_p, min_p, temperature, generator)
    return tokens
