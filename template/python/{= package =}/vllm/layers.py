# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""vLLM layers on the device's kernels, through vLLM's registry for out-of-tree devices."""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import Tensor
from torch.nn import functional
from vllm.model_executor.layers.activation import GeluAndMul, SiluAndMul
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.rotary_embedding import RotaryEmbedding

from .. import serving
from . import linear, operators
from .experts import DeviceExperts, UnquantizedFusedMoEMethod

__all__ = ["register"]


class DeviceRMSNorm(RMSNorm):
    """RMS normalization of rows, with an optional residual."""

    def forward_oot(self, x: Tensor, residual: Tensor | None = None) -> Any:
        """Normalize. With a residual, this changes both tensors in place, as vLLM allows."""
        if self.variance_size_override is not None or not self.has_weight:
            return self.forward_native(x, residual)
        weight = self.weight.data
        if residual is None:
            return functional.rms_norm(x, weight.shape, weight, self.variance_epsilon)
        serving.fused_add_rms_norm(x, residual, weight, self.variance_epsilon)
        return x, residual


class DeviceRotaryEmbedding(RotaryEmbedding):
    """Rotary position embedding, in place."""

    def forward_oot(
        self, positions: Tensor, query: Tensor, key: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Rotate query and key in place, and return them."""
        table = self._match_cos_sin_cache_dtype(query)
        serving.rotary_embedding(positions, query, key, self.head_size, table, self.is_neox_style)
        return query, key


class DeviceSiluAndMul(SiluAndMul):
    """The gated activation of models like Llama."""

    def forward_oot(self, x: Tensor) -> Tensor:
        """Return SiLU of the first half, times the second."""
        return serving.silu_and_mul(x)


class DeviceGeluAndMul(GeluAndMul):
    """The gated activation of models like Gemma."""

    def forward_oot(self, x: Tensor) -> Tensor:
        """Return GELU of the first half, times the second."""
        approximate = self.approximate == "tanh"
        return serving.gelu_tanh_and_mul(x) if approximate else serving.gelu_and_mul(x)


@cache
def register() -> None:
    """Register the layers with vLLM, once per process."""
    RMSNorm.register_oot(DeviceRMSNorm, name="RMSNorm")
    RotaryEmbedding.register_oot(DeviceRotaryEmbedding, name="RotaryEmbedding")
    SiluAndMul.register_oot(DeviceSiluAndMul, name="SiluAndMul")
    GeluAndMul.register_oot(DeviceGeluAndMul, name="GeluAndMul")
    UnquantizedFusedMoEMethod.register_oot(DeviceExperts, name="UnquantizedFusedMoEMethod")
    linear.register()
    operators.register()
