# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""Attention over paged caches: one operator for prefill, chunked prefill and decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
)

from .. import serving
from .._build import NAME
from .platform import backend, computes

__all__ = ["PagedAttention", "PagedAttentionBuilder", "PagedAttentionImpl", "PagedMetadata"]

FLOAT8 = {
    "fp8": torch.float8_e4m3fn,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


class PagedAttention(AttentionBackend):
    """The properties of this attention for vLLM."""

    forward_includes_kv_cache_update = False
    supported_dtypes: ClassVar[list[torch.dtype]] = [
        torch.float32,
        torch.bfloat16,
        torch.float16,
    ]
    supported_kv_cache_dtypes: ClassVar[list[Any]] = [
        *("auto", "float16", "bfloat16"),
        *FLOAT8,
    ]

    @staticmethod
    def get_name() -> str:
        """Return vLLM's name for attention of out-of-tree devices."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[PagedAttentionImpl]:
        """Return the class that computes the attention."""
        return PagedAttentionImpl

    @staticmethod
    def get_builder_cls() -> type[PagedAttentionBuilder]:
        """Return the class that builds the metadata of a batch."""
        return PagedAttentionBuilder

    @classmethod
    def supports_dtype(cls, dtype: torch.dtype) -> bool:
        """Return whether the device supports ``dtype``."""
        return dtype in cls.supported_dtypes and computes(dtype)

    @classmethod
    def supports_kv_cache_dtype(cls, kv_cache_dtype: Any) -> bool:
        """Return whether caches can have this dtype; float8 needs float8 tensors on the device."""
        if not super().supports_kv_cache_dtype(kv_cache_dtype):
            return False
        return kv_cache_dtype not in FLOAT8 or (
            backend.dtype_support(FLOAT8[kv_cache_dtype]) != "unsupported"
        )

    @classmethod
    def supports_sliding_window(cls) -> bool:
        """Return True: the operator supports windows."""
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        """Return True: the operator supports attention to all keys of a cache."""
        return True

    @classmethod
    def supports_sink(cls) -> bool:
        """Return True: a head may have a sink, a logit without a key."""
        return True

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        """Return whether the queries come from a decoder."""
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER_DECODER)

    @classmethod
    def validate_configuration(cls, device_capability: Any, **given: Any) -> list[str]:
        """Return why the configuration is unsupported, after a test with one query."""
        reasons: list[str] = super().validate_configuration(
            device_capability=device_capability, **given
        )
        if not reasons and given["attn_type"] == AttentionType.DECODER:
            reasons += declined(given["head_size"], given["dtype"], given["kv_cache_dtype"])
        return reasons


def declined(head_size: int, dtype: torch.dtype, kv_cache_dtype: Any) -> list[str]:
    """Return why the device does not support heads of this kind, or an empty list."""
    query = torch.zeros(1, 1, head_size, dtype=dtype, device=NAME)
    kept = FLOAT8.get(kv_cache_dtype)
    scale = None if kept is None else torch.ones(1, device=NAME)
    cache = torch.zeros(1, 16, 1, head_size, dtype=kept or dtype, device=NAME)
    starts = torch.arange(2, dtype=torch.int32, device=NAME)
    table = torch.zeros(1, 1, dtype=torch.int32, device=NAME)
    policy = backend.set_fallback_policy("error")
    try:
        serving.attention_with_cache(
            query, cache, cache, starts, starts[1:], table, 1, 1, k_scale=scale, v_scale=scale
        )
    except NotImplementedError as error:
        return [str(error).splitlines()[0]]
    finally:
        backend.set_fallback_policy(policy)
    return []


@dataclass
class PagedMetadata(AttentionMetadata):
    """A batch: packed queries, and the blocks of each sequence's keys."""

    num_actual_tokens: int
    query_start_loc: Tensor
    seq_lens: Tensor
    block_table: Tensor
    slot_mapping: Tensor
    max_query_len: int
    max_seq_len: int
    causal: bool


class PagedAttentionBuilder(AttentionMetadataBuilder[PagedMetadata]):
    """Builds the operator's arguments from vLLM's metadata of a batch."""

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> PagedMetadata:
        """Return the metadata of the batch.

        Raises:
            NotImplementedError: the batch has causal and non-causal sequences.
        """
        given = common_attn_metadata
        if isinstance(given.causal, Tensor):
            raise NotImplementedError("a batch with causal and non-causal sequences is unsupported")
        return PagedMetadata(
            num_actual_tokens=given.num_actual_tokens,
            query_start_loc=given.query_start_loc,
            seq_lens=given.seq_lens,
            block_table=given.block_table_tensor,
            slot_mapping=given.slot_mapping,
            max_query_len=given.max_query_len,
            max_seq_len=given.max_seq_len,
            causal=given.causal,
        )


class PagedAttentionImpl(AttentionImpl[PagedMetadata]):
    """The attention of one layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: Tensor | None = None,
    ) -> None:
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.soft_cap = logits_soft_cap or 0.0
        # vLLM's window includes the key at the query's position.
        self.window = (-1, -1) if sliding_window is None else (sliding_window - 1, 0)
        self.sinks = sinks
        self.slopes: Tensor | None = None
        if alibi_slopes is not None:
            self.slopes = torch.tensor(alibi_slopes, dtype=torch.float32, device=NAME)
        self.float8 = FLOAT8.get(kv_cache_dtype)

    def _caches(self, kv_cache: Tensor) -> tuple[Tensor, Tensor]:
        """Return the views of keys and values, (blocks, block size, kv heads, head size)."""
        if self.float8 is not None:
            kv_cache = kv_cache.view(self.float8)
        rows = kv_cache.transpose(1, 2)
        return rows[..., : self.head_size], rows[..., self.head_size :]

    def _scales(self, layer: Any) -> tuple[Tensor | None, Tensor | None]:
        """Return the scales of keys and values in a float8 cache."""
        return (None, None) if self.float8 is None else (layer._k_scale, layer._v_scale)

    def do_kv_cache_update(
        self, layer: Any, key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """Write the keys and values of new tokens to their slots."""
        caches = self._caches(kv_cache)
        serving.reshape_and_cache(key, value, *caches, slot_mapping, *self._scales(layer))

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: PagedMetadata | None,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        """Write the attention to ``output``, or zeros without a batch, as in memory profiling."""
        if attn_metadata is None:
            return output.fill_(0)
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("attention with a quantized result is unsupported")
        batch = attn_metadata
        tokens = batch.num_actual_tokens
        key_cache, value_cache = self._caches(kv_cache)
        k_scale, v_scale = self._scales(layer)
        serving.attention_with_cache(
            query[:tokens],
            key_cache,
            value_cache,
            batch.query_start_loc,
            batch.seq_lens,
            batch.block_table,
            batch.max_query_len,
            batch.max_seq_len,
            scale=self.scale,
            causal=batch.causal and self.attn_type == AttentionType.DECODER,
            window=self.window,
            softcap=self.soft_cap,
            alibi_slopes=self.slopes,
            sinks=self.sinks,
            k_scale=k_scale,
            v_scale=v_scale,
            out=output[:tokens],
        )
        return output
