# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""Unquantized mixture of experts: routing, and matrix products for each expert."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import (
    UnquantizedFusedMoEMethod,
)

from .. import serving
from .._build import NAME

__all__ = ["DeviceExperts", "UnquantizedFusedMoEMethod"]

GATES = {
    "silu": serving.silu_and_mul,
    "gelu": serving.gelu_and_mul,
    "gelu_tanh": serving.gelu_tanh_and_mul,
}


class DeviceExperts(UnquantizedFusedMoEMethod):
    """The experts of a layer.

    vLLM's routers call CUDA kernels. A "monolithic" method receives the router's logits and selects
    the experts itself.
    """

    @property
    def is_monolithic(self) -> bool:
        """Return True."""
        return True

    def process_weights_after_loading(self, layer: Any) -> None:
        """Raise for a layer with unsupported options.

        Raises:
            NotImplementedError: the layer has unsupported options; the message names them.
        """
        unknown = {
            "groups of experts": layer.use_grouped_topk,
            "a routing function of the model": layer.custom_routing_function is not None,
            "a bias of the router": layer.e_score_correction_bias is not None,
            f"scores by {layer.scoring_func}": layer.scoring_func != "softmax",
            f"activation {layer.activation.value}": layer.activation.value not in GATES,
            "experts divided among processes": layer.expert_map is not None,
            "weights of the router on the input": layer.apply_router_weight_on_input,
            "biases of experts": self.moe.has_bias,
        }
        found = [name for name, present in unknown.items() if present]
        if found:
            raise NotImplementedError(f"experts on {NAME} do not support {', '.join(found)}")
        super().process_weights_after_loading(layer)

    def apply_monolithic(
        self, layer: Any, x: Tensor, router_logits: Tensor, input_ids: Tensor | None = None
    ) -> Tensor:
        """Return the weighted sum of the selected experts' results for each token."""
        scores = router_logits.softmax(dim=-1, dtype=torch.float32)
        weights, chosen = scores.topk(layer.top_k, dim=-1)
        if layer.renormalize:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        experts, order = chosen.flatten().sort(stable=True)
        tokens = order.div(layer.top_k, rounding_mode="floor")
        counts = torch.bincount(experts, minlength=layer.w13_weight.shape[0]).tolist()
        rows = x.index_select(0, tokens)
        gate = GATES[layer.activation.value]
        parts = [
            functional.linear(gate(functional.linear(part, up)), down)
            for part, up, down in zip(
                torch.split(rows, counts), layer.w13_weight, layer.w2_weight, strict=True
            )
            if part.shape[0]
        ]
        share = weights.flatten().index_select(0, order).to(x.dtype)
        result = torch.zeros_like(x)
        return result.index_add_(0, tokens, torch.cat(parts) * share[:, None])
