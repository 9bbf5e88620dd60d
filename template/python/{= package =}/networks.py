"""Attention in traced programs."""

from __future__ import annotations

from typing import Any

import torch

from ._compat import release
from ._patching import is_wanted

__all__: list[str] = []

PATCHES = ("traced_attention",)

_kept: list[Any] = []
"""Libraries that must live as long as the process: deleting one removes its kernels."""


def setup() -> None:
    """Patch how PyTorch traces fused attention."""
    if is_wanted("traced_attention"):
        repair_traced_attention()


def repair_traced_attention() -> None:
    """Register the shapes of attention's gradients for tracing.

    PyTorch 2.10 and 2.11 have the shapes of the forward pass only, and run the backward pass on
    made-up tensors. Remove this when 2.12 is the oldest supported release.
    """
    if release() >= (2, 12):
        return

    def gradients(
        grad: torch.Tensor, query: Any, key: Any, value: Any, bias: Any, *_: Any, **__: Any
    ) -> tuple[torch.Tensor | None, ...]:
        return tuple(
            None if given is None else torch.empty_like(given)
            for given in (query, key, value, bias)
        )

    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("_scaled_dot_product_fused_attention_overrideable_backward", gradients, "Meta")
    _kept.append(library)
