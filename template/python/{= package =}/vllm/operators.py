"""Operators of vLLM's compiled library that its Python calls whatever the device: float8 numbers.

They are defined as there where that library is not loaded, and have kernels in plain PyTorch for
tensors of this device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._build import NAME

__all__ = ["register"]


def static_scaled_fp8_quant(
    result: Tensor, input: Tensor, scale: Tensor, group_shape: tuple[int, int] | None = None
) -> None:
    """Write the numbers of a matrix for scales of the whole, of rows, of columns or of blocks.

    ``group_shape`` says which numbers share a scale; -1 stands for all of a dimension.
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
    """Write the numbers of a matrix, and the one scale that its largest asks for."""
    scale.copy_(input.float().abs().max() / torch.finfo(result.dtype).max)
    _write(result, input, scale)


def dynamic_per_token_scaled_fp8_quant(
    result: Tensor, input: Tensor, scale: Tensor, scale_ub: Tensor | None = None
) -> None:
    """Write the numbers of a matrix, and a scale for each row; ``scale_ub`` bounds its largest."""
    most = input.float().abs().amax(dim=1, keepdim=True)
    if scale_ub is not None:
        most = torch.minimum(most, scale_ub)
    limit = torch.finfo(result.dtype).max
    smallest = 1 / (limit * 512)
    rows = input.shape[0]
    scale[:rows] = (most / limit).clamp_(min=smallest)
    _write(result, input, scale[:rows])


def _write(result: Tensor, input: Tensor, scale: Tensor) -> None:
    """Convert; rows of the result behind those of the input are padding."""
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
    """Register the kernels; an operator that is defined already is left as it is."""
    for schema, kernel in KERNELS.items():
        name, _, arguments = schema.partition("(")
        if not hasattr(torch.ops._C, name):
            torch.library.define(f"_C::{name}", f"({arguments}")
        torch.library.impl(f"_C::{name}", NAME, kernel)
