"""Operators for inference engines of language models: paged key-value caches, attention, sampling.

Each function calls an operator, ``torch.ops.<backend>.<name>``, with the names and tensors of
vLLM's operators. The device's kernels compute them. Unsupported calls and CPU tensors run on the
CPU. No operator supports autograd.

Caches are ``(blocks, block size, kv heads, head size)``. Sequences of queries are concatenated,
``(tokens, heads, head size)``. A block table lists the blocks with a sequence's keys.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from ._build import NAME

__all__: list[str] = []


def setup() -> None:
    """Register the CPU and fake implementations of the operators."""
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

    Slot ``s`` is row ``s % block size`` of block ``s // block size``. Tokens with a negative slot,
    and tokens beyond the end of ``slot_mapping``, are skipped. A float8 cache stores
    ``key / k_scale`` and ``value / v_scale``.
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
    """Rotate each head of ``query`` and ``key`` by the angles of its token's position, in place.

    A row of ``cos_sin_cache`` has the cosines of a position and then the sines. As many elements of
    each head are rotated as a row has: pairs ``(i, i + half)`` with ``is_neox``, otherwise adjacent
    elements.
    """
    _ops().rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox)


def fused_add_rms_norm(input: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> None:
    """Compute ``residual += input``, then ``input = rms_norm(residual) * weight``, in place."""
    _ops().fused_add_rms_norm(input, residual, weight, epsilon)


def silu_and_mul(input: Tensor, out: Tensor | None = None) -> Tensor:
    """Return SiLU of the first half of the last dimension, times the second half."""
    return _gate("silu_and_mul", input, out)


def gelu_and_mul(input: Tensor, out: Tensor | None = None) -> Tensor:
    """Return GELU of the first half of the last dimension, times the second half."""
    return _gate("gelu_and_mul", input, out)


def gelu_tanh_and_mul(input: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the same as :func:`gelu_and_mul`, with the tanh approximation of GELU."""
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
    """Return attention over paged keys and values, and its logsumexp.

    Sequence ``b`` has the queries from ``cu_seqlens_q[b]`` to ``cu_seqlens_q[b + 1]`` and
    ``seqused_k[b]`` keys, in the blocks of ``block_table[b]``. Its last query has the position of
    its last key. All three tensors are int32. The logsumexp of softmax, ``(heads, tokens)``, serves
    to merge partial results.
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

    The logits are divided by ``temperature``; 0 returns the argmax. ``min_p`` removes the tokens
    that are less probable than ``min_p`` times the most probable one. ``top_k`` keeps the ``top_k``
    most probable tokens. ``top_p`` keeps the most probable tokens whose sum reaches ``top_p``. Each
    of these tensors has a number for each row.
    """
    tokens: Tensor = _ops().top_k_top_p_sample(logits, top_k, top_p, min_p, temperature, generator)
    return tokens
