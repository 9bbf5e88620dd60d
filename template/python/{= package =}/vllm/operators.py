"""float8 quantization: operators of vLLM's compiled library that its Python calls on all devices.

They have kernels in plain PyTorch for tensors of this device. If vLLM's library is not loaded, they
are defined with its schemas.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._build import NAME

__all__ = ["register"]


def static_scaled_fp8_quant(
    result: Tensor, input: Tensor, scale: Tensor, group_shape: tuple[int, int] | None = None
) -> None:
    """Quantize a matrix with given scales: per tensor, per row, per column or per block.

    ``group_shape`` is the shape of the block that shares a scale; -1 is the whole dimension.
    """
    rows, columns = input.shape
    if scale.numel() > 1:
        if group_shape is None:
            high, wide = rows // scale.shape[0], columns // scale.shape[1]
        else:
            high, wide = (
                size if group == -1 else group
                for group, size in zip(group_shape, (rows, columns), strict=True)
            )
        scale = scale.reshape(rows // high, columns // wide)
        scale = scale.repeat_interleave(high, 0).repeat_interleave(wide, 1)
    _write(result, input, scale)


def dynamic_scaled_fp8_quant(result: Tensor, input: Tensor, scale: Tensor) -> None:
    """Quantize a matrix, and write one scale, computed from its largest absolute value."""
    scale.copy_(input.float().abs().max() / torch.finfo(result.dtype).max)
    _write(result, input, scale)


def dynamic_per_token_scaled_fp8_quant(
    result: Tensor, input: Tensor, scale: Tensor, scale_ub: Tensor | None = None
) -> None:
    """Quantize a matrix, and write a scale for each row. ``scale_ub`` limits the largest values."""
    most = input.float().abs().amax(dim=1, keepdim=True)
    if scale_ub is not None:
        most = torch.minimum(most, scale_ub)
    limit = torch.finfo(result.dtype).max
    smallest = 1 / (limit * 512)
    rows = input.shape[0]
    scale[:rows] = (most / limit).clamp_(min=smallest)
    _write(result, input, scale[:rows])


def _write(result: Tensor, input: Tensor, scale: Tensor) -> None:
    """Write the quantized rows. Rows of the result after those of the input are padding."""
    limit = torch.finfo(result.dtype).max
    result[: input.shape[0]] = (input.float() / scale).clamp_(-limit, limit).to(result.dtype)


KERNELS = {
    "static_scaled_fp8_quant(Tensor! result, Tensor input, Tensor scale, "
    "(int, int)? group_shape=None) -> ()": static_scaled_fp8_quant,
    "dynamic_scaled_fp8_quant(Tensor! result, Tensor input, Tensor! scale) -> ()": (
        dynamic_scaled_fp8_quant
    ),
    "dynamic_per_token_scaled_fp8_quant(Tensor! result, Tensor input, Tensor! scale, "
    "Tensor? scale_ub) -> ()": dynamic_per_token_scaled_fp8_quant,
}


def register() -> None:
    """Register the kernels, and define the operators that do not exist yet."""
    for schema, kernel in KERNELS.items():
        name, _, arguments = schema.partition("(")
        if not hasattr(torch.ops._C, name):
            torch.library.define(f"_C::{name}", f"({arguments}")
        torch.library.impl(f"_C::{name}", NAME, kernel)
