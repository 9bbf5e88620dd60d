"""What tracing knows of convolutions and attention on this device."""

from __future__ import annotations

from typing import Any

import torch

from ._build import NAME
from ._compat import release
from ._patching import is_wanted

__all__: list[str] = []

PATCHES = ("traced_attention", "traced_convolutions")

_kept: list[Any] = []
"""What has to last as long as the process: a library's kernels go when it does."""


def setup() -> None:
    """Repair what PyTorch assumes of the shapes and strides of their results."""
    if is_wanted("traced_convolutions"):
        repair_traced_convolutions()
    if is_wanted("traced_attention"):
        repair_traced_attention()


def repair_traced_convolutions() -> None:
    """Let tracing know when the channels of a convolution's result come last.

    PyTorch traces convolutions of all backends of this kind as if their results were contiguous, so
    compiled code takes elements from where they are not. Here the format is that of the input or of
    the weight, as csrc/aten/networks/convolution.cpp has it. This can go once PyTorch asks the backend.
    """
    module: Any = torch._C
    original = module._conv_determine_backend_memory_format

    def _conv_determine_backend_memory_format(
        input: torch.Tensor, weight: torch.Tensor, backend: Any
    ) -> torch.memory_format:
        if input.device.type != NAME or backend != module._ConvBackend.Overrideable:
            format: torch.memory_format = original(input, weight, backend)
            return format
        from torch._prims_common import suggest_memory_format

        found = suggest_memory_format(input)
        return suggest_memory_format(weight) if found is torch.contiguous_format else found

    module._conv_determine_backend_memory_format = _conv_determine_backend_memory_format


def repair_traced_attention() -> None:
    """Let tracing know the shapes of attention's gradients without computing them.

    PyTorch 2.10 and 2.11 know those of the forward pass alone, and compute the backward pass with
    tensors that they make up for it. This can go when 2.12 is the oldest supported.
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
