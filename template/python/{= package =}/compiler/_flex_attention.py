"""``flex_attention`` on this device's operators. Imported after PyTorch's module of that function.

PyTorch has kernels for a fixed list of devices. This implementation uses matrix products, a softmax
and the functions that change the scores.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import torch

from .._build import NAME


def install() -> None:
    """Make ``torch.nn.attention.flex_attention`` accept tensors of this device."""
    module: Any = importlib.import_module("torch.nn.attention.flex_attention")
    validate, operator = module._validate_device, module.flex_attention_hop

    def _validate_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != NAME:
            validate(query, key, value)

    def flex_attention_hop(query: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
        if query.device.type != NAME:
            return operator(query, *arguments, **keywords)
        return attention(query, *arguments, **keywords)

    module._validate_device = _validate_device
    module.flex_attention_hop = flex_attention_hop


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the results of PyTorch's operator with this signature.

    The results are the attention of shape (B, H, L, Ev) in the dtype of ``query``, then for each
    row the logarithm to base 2 of the sum of exponentials and the maximum score times log2(e). The
    last two have shape (B, H, L) and dtype float32, or float64 for a float64 ``query``.
    """
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    groups = query.shape[1] // key.shape[1]
    key, value = (
        part.expand(query.shape[0], *part.shape[1:]).repeat_interleave(groups, dim=1)
        for part in (key, value)
    )
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1) * scale
    places = [torch.arange(size, device=query.device) for size in scores.shape]
    scores = _for_each(score_mod, (0,))(scores, *places)
    seen = _for_each(block_mask[-1], ())(*places)
    scores = torch.where(seen, scores, -math.inf)
    greatest = scores.amax(dim=-1)
    # The result of a row whose scores are all masked is zero.
    weights = torch.softmax(scores, dim=-1).masked_fill((greatest == -math.inf).unsqueeze(-1), 0.0)
    sums = torch.logsumexp(scores, dim=-1)
    return weights.to(query.dtype) @ value, sums / math.log(2), greatest / math.log(2)


def _for_each(
    function: Callable[..., torch.Tensor], scores: tuple[int, ...]
) -> Callable[..., torch.Tensor]:
    """Vectorize a function of an optional score and its batch, head, row and column."""
    for place in reversed(range(4)):
        function = torch.vmap(
            function, in_dims=(*scores, *(0 if other == place else None for other in range(4)))
        )
    return function
