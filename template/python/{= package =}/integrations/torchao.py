"""torchao configurations that depend on the device: ``quantize_(model, Int4WeightOnlyConfig())``.

torchao's own classes of these names raise for an unknown device. The two classes here have the same
names, fields and results, and are registered with torchao. Its other configurations work as they
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torchao import quantization
from torchao.quantization.quant_primitives import (
    MappingType,
    choose_qparams_affine,
    quantize_affine,
)
from torchao.quantization.quantize_.workflows import (
    Float8PackingFormat,
    QuantizeTensorToFloat8Kwargs,
)
from torchao.quantization.transform_module import register_quantize_module_handler

from .._build import NAME

__all__ = [
    "Float8DynamicActivationFloat8WeightConfig",
    "Int4PlainInt32Tensor",
    "Int4WeightOnlyConfig",
    "adopt",
]


class Int4PlainInt32Tensor(quantization.Int4PlainInt32Tensor):  # type: ignore[misc, unused-ignore]
    """A 4-bit weight. Each group of a row has a scale and a zero point.

    An int32 packs eight numbers, the first in the lowest bits. torchao's class of this name has the
    same data, and multiplies on two other devices only. Safetensors files load as torchao's class.
    """

    @classmethod
    def from_hp(cls, w: torch.Tensor, block_size: list[int]) -> Int4PlainInt32Tensor:
        """Return ``w`` quantized.

        Raises:
            ValueError: ``w`` is not a matrix on this device, or a row is not a multiple of a group.
        """
        rows, inner = w.shape if w.dim() == 2 else (0, 0)
        group = block_size[-1]
        if w.device.type != NAME or w.dim() != 2 or inner % group:
            raise ValueError(
                f"4-bit weights need a matrix on {NAME} whose row length is a multiple of "
                f"{group}, got sizes {tuple(w.shape)} on {w.device}"
            )
        range_of_codes: dict[str, Any] = {"quant_min": 0, "quant_max": 15}
        scale, zero_point = choose_qparams_affine(
            w,
            MappingType.ASYMMETRIC,
            tuple(block_size),
            torch.int32,
            eps=1e-6,
            zero_point_dtype=torch.int32,
            **range_of_codes,
        )
        codes = quantize_affine(
            w, tuple(block_size), scale, zero_point, torch.int32, **range_of_codes
        )
        of_bytes = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
        return cls(
            of_bytes.view(torch.int32),
            scale.reshape(rows, -1).t().contiguous(),
            zero_point.reshape(rows, -1).t().contiguous().to(torch.int8),
            block_size,
            w.shape,
        )


def _linear(function: Any, types: Any, arguments: Any, keywords: Any) -> torch.Tensor:
    x, weight, bias = (*arguments, *[keywords.get("bias")] * (len(arguments) == 2))[:3]
    if weight.act_pre_scale is not None:
        x = x * weight.act_pre_scale
    out: torch.Tensor = torch.ops.aten._weight_int4pack_mm_with_scales_and_zeros(
        x.reshape(-1, x.shape[-1]),
        weight.qdata,
        weight.block_size[1],
        weight.scale,
        weight.zero_point,
    ).reshape(*x.shape[:-1], -1 if x.numel() else weight.shape[0])
    return out if bias is None else out + bias


Int4PlainInt32Tensor.implements(torch.ops.aten.linear.default)(_linear)
Int4PlainInt32Tensor.implements_torch_function(torch.nn.functional.linear)(_linear)
torch.serialization.add_safe_globals([Int4PlainInt32Tensor])


def adopt(model: torch.nn.Module) -> torch.nn.Module:
    """Convert 4-bit weights loaded from a file to the class here, and return ``model``."""
    for module in model.modules():
        weights: list[tuple[str, Any]] = list(module.named_parameters(recurse=False))
        for name, weight in weights:
            if type(weight.data) is quantization.Int4PlainInt32Tensor:
                names = (*weight.tensor_data_names, *weight.tensor_attribute_names)
                values = [getattr(weight, each) for each in (*names, "act_pre_scale")]
                _replace(module, name, Int4PlainInt32Tensor(*values))
    return model


@dataclass
class Int4WeightOnlyConfig(quantization.Int4WeightOnlyConfig):  # type: ignore[misc, unused-ignore]
    """torchao's configuration, always packed as :class:`Int4PlainInt32Tensor`."""


@dataclass
class Float8DynamicActivationFloat8WeightConfig(
    quantization.Float8DynamicActivationFloat8WeightConfig  # type: ignore[misc, unused-ignore]
):
    """torchao's configuration, for weights of linear layers, with scales per tensor or per row."""


def _replace(module: torch.nn.Module, name: str, weight: torch.Tensor) -> torch.nn.Module:
    setattr(module, name, torch.nn.Parameter(weight, requires_grad=False))
    return module


def _int4(
    module: torch.nn.Module, config: Int4WeightOnlyConfig, *, parameter_name: str = "weight"
) -> torch.nn.Module:
    weight = getattr(module, parameter_name)
    if weight.shape[-1] % config.group_size:
        return module  # as torchao does
    return _replace(
        module, parameter_name, Int4PlainInt32Tensor.from_hp(weight, [1, config.group_size])
    )


def _float8(
    module: torch.nn.Module,
    config: Float8DynamicActivationFloat8WeightConfig,
    *,
    parameter_name: str = "weight",
) -> torch.nn.Module:
    weight = getattr(module, parameter_name)
    of_activations, of_weights = config.granularity
    simple = (quantization.PerTensor, quantization.PerRow)
    if not (
        weight.dim() == 2
        and config.packing_format == Float8PackingFormat.PLAIN
        and isinstance(of_weights, simple)
        and type(of_activations) is type(of_weights)
    ):
        raise ValueError(
            "float8 of activations and weights is for matrices, packed plainly, with scales of "
            f"tensors or of rows: got {weight.dim()} dimensions, {config.packing_format}, "
            f"{of_activations} and {of_weights}"
        )
    quantized = quantization.Float8Tensor.from_hp(
        weight,
        float8_dtype=config.weight_dtype,
        granularity=of_weights,
        mm_config=config.mm_config,
        kernel_preference=config.kernel_preference,
        act_quant_kwargs=QuantizeTensorToFloat8Kwargs(
            config.activation_dtype,
            of_activations,
            hp_value_lb=config.activation_value_lb,
            hp_value_ub=config.activation_value_ub,
            kernel_preference=config.kernel_preference,
        ),
    )
    return _replace(module, parameter_name, quantized)


register_quantize_module_handler(Int4WeightOnlyConfig)(_int4)
register_quantize_module_handler(Float8DynamicActivationFloat8WeightConfig)(_float8)
