"""The operators of :mod:`.serving` in plain PyTorch: for tensors on the CPU, and for tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional

from ._build import NAME

_libraries: list[Any] = []


def register() -> None:
    """Register the implementations of the operators that the C++ library has declared."""
    library: Any = torch.library.Library(NAME, "FRAGMENT")  # type: ignore[no-untyped-call]
    _libraries.append(library)  # its implementations are removed when it is deleted
    for name, (on_cpu, fake) in _REFERENCES.items():
        library.impl(name, on_cpu, "CPU")
        library._register_fake(name, fake)


def _store(cache: Tensor, tokens: Tensor, slots: Tensor, scale: Tensor | None) -> None:
    if scale is not None:
        tokens = tokens / scale.reshape(-1, 1).to(tokens.dtype)
    if cache.dtype != tokens.dtype:
        limit = torch.finfo(cache.dtype).max
        tokens = tokens.clamp(-limit, limit).to(cache.dtype)
    size = cache.shape[1]
    used = slots >= 0
    # Written as bytes, as not every PyTorch release can index float8.
    bits = cache.view(torch.uint8) if cache.dtype.itemsize == 1 else cache
    rows = tokens[: len(slots)][used]
    slots = slots[used]
    bits[slots // size, slots % size] = rows.view(bits.dtype) if bits is not cache else rows


def _reshape_and_cache(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> None:
    _store(key_cache, key, slot_mapping, k_scale)
    _store(value_cache, value, slot_mapping, v_scale)


def _turn(tensor: Tensor, head_size: int, table: Tensor, is_neox: bool) -> None:
    heads = tensor.view(table.shape[0], -1, head_size)
    cosines, sines = table.to(torch.promote_types(table.dtype, torch.float32))[:, None].chunk(2, -1)
    points = cosines.shape[-1]
    pairs = (slice(0, points), slice(points, 2 * points))
    left, right = pairs if is_neox else (slice(0, 2 * points, 2), slice(1, 2 * points, 2))
    x, y = heads[..., left].clone(), heads[..., right].clone()
    heads[..., left] = (x * cosines - y * sines).to(x.dtype)
    heads[..., right] = (y * cosines + x * sines).to(x.dtype)


def _rotary_embedding(
    positions: Tensor,
    query: Tensor,
    key: Tensor | None,
    head_size: int,
    cos_sin_cache: Tensor,
    is_neox: bool,
) -> None:
    table = cos_sin_cache[positions.reshape(-1)]
    for tensor in (query, key):
        if tensor is not None and tensor.shape[: positions.dim()] != positions.shape:
            raise ValueError(
                f"the sizes of query and key begin with {tuple(positions.shape)}, those of the "
                f"positions; got {tuple(tensor.shape)}"
            )
    _turn(query, head_size, table, is_neox)
    if key is not None:
        _turn(key, head_size, table, is_neox)


def _fused_add_rms_norm(input: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> None:
    residual += input
    wide = residual.to(torch.promote_types(residual.dtype, torch.float32))
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon) * weight
    input.copy_(wide)


def _gated(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], None]:
    def gate(out: Tensor, input: Tensor) -> None:
        wide = input.to(torch.promote_types(input.dtype, torch.float32))
        left, right = wide.chunk(2, -1)
        out.copy_(activation(left) * right)

    return gate


def _tanh_gelu(tensor: Tensor) -> Tensor:
    return functional.gelu(tensor, approximate="tanh")


def _rows(cache: Tensor, blocks: Tensor, count: int, scale: Tensor | None, number: int) -> Tensor:
    """Return the keys or values of one sequence, ``(kv heads, keys, head size)``."""
    size = cache.shape[1]
    rows = cache[blocks[: -(-count // size)].long()].flatten(0, 1)[:count]
    if rows.dtype.itemsize == 1:
        rows = rows.float()
    rows = rows.transpose(0, 1)
    if scale is None:
        return rows
    scale = scale[number] if scale.dim() == 2 else scale
    return rows * scale.reshape(-1, 1, 1)


def _mask(queries: int, keys: int, causal: bool, left: int, right: int) -> tuple[Tensor, Tensor]:
    """Return the distance of each key from each query's position, and the mask of visible keys."""
    distance = torch.arange(keys)[None] - (torch.arange(queries)[:, None] + keys - queries)
    seen = torch.ones_like(distance, dtype=torch.bool)
    if causal:
        seen &= distance <= 0
    if left >= 0:
        seen &= distance >= -left
    if right >= 0:
        seen &= distance <= right
    return distance, seen


def _attention_with_cache(
    out: Tensor,
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    cu_seqlens_q: Tensor,
    seqused_k: Tensor,
    block_table: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float | None = None,
    causal: bool = True,
    window_left: int = -1,
    window_right: int = -1,
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> Tensor:
    starts = cu_seqlens_q.tolist()
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    logsumexp = torch.full((query.shape[1], query.shape[0]), torch.inf, dtype=wide)
    scale = query.shape[2] ** -0.5 if scale is None else scale
    heads = query.shape[1]
    for number, keys in enumerate(seqused_k.tolist()):
        rows = slice(starts[number], starts[number + 1])
        q = query[rows].to(wide).transpose(0, 1)
        k = _rows(key_cache, block_table[number], keys, k_scale, number)
        v = _rows(value_cache, block_table[number], keys, v_scale, number)
        k, v = (part.to(wide).repeat_interleave(heads // part.shape[0], 0) for part in (k, v))
        scores = scale * q @ k.transpose(1, 2)
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        distance, seen = _mask(q.shape[1], keys, causal, window_left, window_right)
        if alibi_slopes is not None:
            slopes = alibi_slopes[number] if alibi_slopes.dim() == 2 else alibi_slopes
            scores = scores - slopes.to(wide).reshape(-1, 1, 1) * distance.abs()
        scores = scores.masked_fill(~seen, -torch.inf)
        sums = scores.logsumexp(2)
        if sinks is not None:
            sums = torch.logaddexp(sums, sinks.to(wide).reshape(-1, 1))
        sums = sums.masked_fill(sums == -torch.inf, torch.inf)
        out[rows] = ((scores - sums[..., None]).exp() @ v).transpose(0, 1).to(out.dtype)
        logsumexp[:, rows] = sums
    return logsumexp


def _top_k_top_p_sample(
    logits: Tensor,
    top_k: Tensor | None = None,
    top_p: Tensor | None = None,
    min_p: Tensor | None = None,
    temperature: Tensor | None = None,
    generator: Generator | None = None,
) -> Tensor:
    rows = logits.shape[0]

    def column(numbers: Tensor | None) -> Tensor | None:
        return None if numbers is None else numbers.expand(rows)[:, None]

    top_k, top_p, min_p, temperature = map(column, (top_k, top_p, min_p, temperature))
    greedy = logits.argmax(1)
    logits = logits.double()
    if temperature is not None:
        logits = logits / torch.where(temperature == 0, 1, temperature)
    weights, order = logits.softmax(1).sort(dim=1, descending=True, stable=True)
    if min_p is not None:
        weights = weights.where(weights >= min_p * weights[:, :1], 0)
    if top_k is not None:
        last = torch.where(top_k < 1, logits.shape[1], top_k).clamp(max=logits.shape[1]).long() - 1
        weights = weights.where(weights >= weights.gather(1, last), 0)
    if top_p is not None:
        before = weights.cumsum(1) - weights
        stays = before < top_p * weights.sum(1, keepdim=True)
        stays[:, 0] = True
        weights = weights.where(stays, 0)
    drawn = torch.empty_like(weights).exponential_(generator=generator)
    chosen = order.gather(1, (weights / drawn).argmax(1, keepdim=True))[:, 0]
    return chosen if temperature is None else torch.where(temperature[:, 0] == 0, greedy, chosen)


def _nothing(*_: object, **__: object) -> None:
    """The fake implementation of an operator that only writes to its arguments."""


def _fake_attention(out: Tensor, query: Tensor, *_: object, **__: object) -> Tensor:
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    return query.new_empty((query.shape[1], query.shape[0]), dtype=wide)


def _fake_sample(logits: Tensor, *_: object, **__: object) -> Tensor:
    return logits.new_empty((logits.shape[0],), dtype=torch.int64)


_REFERENCES: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
    "reshape_and_cache": (_reshape_and_cache, _nothing),
    "rotary_embedding": (_rotary_embedding, _nothing),
    "fused_add_rms_norm": (_fused_add_rms_norm, _nothing),
    "silu_and_mul": (_gated(functional.silu), _nothing),
    "gelu_and_mul": (_gated(functional.gelu), _nothing),
    "gelu_tanh_and_mul": (_gated(_tanh_gelu), _nothing),
    "attention_with_cache": (_attention_with_cache, _fake_attention),
    "top_k_top_p_sample": (_top_k_top_p_sample, _fake_sample),
}
