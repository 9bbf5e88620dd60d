# mypy: disable-error-code="import-not-found,import-untyped,misc"
"""Linear layers with quantized weights, through vLLM's registry of kernels for their formats."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from vllm.model_executor.kernels.linear import register_linear_kernel
from vllm.model_executor.kernels.linear.mixed_precision import MPLinearKernel
from vllm.model_executor.kernels.linear.scaled_mm import (
    FP8ScaledMMLinearKernel,
    Int8ScaledMMLinearKernel,
)
from vllm.model_executor.layers.quantization.utils import replace_parameter
from vllm.model_executor.layers.quantization.utils.quant_utils import (
    unpack_quantized_values_into_int32,
)
from vllm.model_executor.layers.quantization.utils.w8a8_utils import convert_to_channelwise
from vllm.platforms import PlatformEnum
from vllm.scalar_type import scalar_types

from .._build import NAME
from .platform import backend

__all__ = ["Float8Linear", "Int4Linear", "Int8Linear", "register"]

Supported = tuple[bool, str | None]

# Group sizes that PyTorch's matrix product with 4-bit weights supports.
GROUPS = (256, 128, 64, 32)
INT8 = torch.iinfo(torch.int8)
# The minimum range of a row, to avoid division by zero.
SMALLEST = 1e-10


def holds(dtype: torch.dtype) -> Supported:
    """Return whether the device can have tensors of ``dtype``, and the reason if not."""
    is_there = backend.dtype_support(dtype) != "unsupported"
    return is_there, None if is_there else f"needs {dtype}, which {NAME} does not support"


def replace(layer: Any, name: str, value: Tensor) -> None:
    """Replace a parameter by a tensor."""
    replace_parameter(layer, name, Parameter(value, requires_grad=False))


def _rounded(numbers: Tensor) -> Tensor:
    return numbers.round_().clamp_(INT8.min, INT8.max).to(torch.int8)


class Int8Linear(Int8ScaledMMLinearKernel):
    """int8 weights and inputs. The inputs have a scale of the checkpoint or one for each row."""

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> Supported:
        """Return whether the device can have int8 tensors."""
        return holds(torch.int8)

    @classmethod
    def can_implement(cls, c: Any) -> Supported:
        """Return True: all forms of scales and zero points are supported."""
        return True, None

    def process_weights_after_loading(self, layer: Any) -> None:
        """Reshape the scales for rows and columns. The weight becomes a transposed view."""
        weight_name, scale_name, input_scale_name, input_zero_name, sums_name = (
            self.layer_param_names
        )
        weight, scale = getattr(layer, weight_name), getattr(layer, scale_name)
        if len(layer.logical_widths) > 1 and not self.config.is_channelwise:
            scale = convert_to_channelwise(scale, layer.logical_widths)
        replace(layer, weight_name, weight.data.t())
        replace(layer, scale_name, scale.data.float().reshape(1, -1))
        if self.config.is_static_input_scheme:
            self._join_inputs(layer, input_scale_name, input_zero_name)
        if not self.config.input_symmetric:
            sums = getattr(layer, weight_name).sum(dim=0, keepdim=True, dtype=torch.int32)
            replace(layer, sums_name, sums.float())

    def _join_inputs(self, layer: Any, scale_name: str, zero_name: str) -> None:
        """Merge the scales and zero points of the parts of a fused layer into one."""
        scale = getattr(layer, scale_name).data.float()
        if self.config.input_symmetric:
            return replace(layer, scale_name, scale.max().reshape(1, 1))
        zero = getattr(layer, zero_name).data.float()
        most, least = (scale * (INT8.max - zero)).max(), (scale * (INT8.min - zero)).min()
        joined = (most - least) / (INT8.max - INT8.min)
        replace(layer, scale_name, joined.reshape(1, 1))
        replace(layer, zero_name, (INT8.min - least / joined).round().reshape(1, 1))

    def _quantize(
        self, x: Tensor, scale: Tensor | None, zero: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return int8 values, the scale of each row and, if asymmetric, its zero point."""
        wide = x.float()
        if self.config.input_symmetric:
            if scale is None:
                scale = wide.abs().amax(dim=1, keepdim=True).clamp_(min=SMALLEST) / INT8.max
            return _rounded(wide / scale), scale, None
        if scale is None or zero is None:
            least, most = torch.aminmax(wide, dim=1, keepdim=True)
            scale = (most - least).clamp_(min=SMALLEST) / (INT8.max - INT8.min)
            zero = (INT8.min - least / scale).round_()
        return _rounded((wide / scale).round_().add_(zero)), scale, zero

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the product in the dtype of ``x``."""
        weight, weight_scale, input_scale, input_zero, sums = self._get_layer_params(layer)
        numbers, scale, zero = self._quantize(x.reshape(-1, x.shape[-1]), input_scale, input_zero)
        product = torch._int_mm(numbers, weight).float()
        if zero is not None:
            product -= zero * sums
        product *= scale * weight_scale
        if bias is not None:
            product += bias
        return product.to(x.dtype).view(*x.shape[:-1], -1)


class Float8Linear(FP8ScaledMMLinearKernel):
    """float8 weights and inputs, with scales per tensor, or per row and column."""

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> Supported:
        """Return whether the device can have float8 tensors."""
        return holds(torch.float8_e4m3fn)

    @classmethod
    def can_implement(cls, c: Any) -> Supported:
        """Return False for scales per block."""
        for key in (c.activation_quant_key, c.weight_quant_key):
            if key.scale.group_shape.is_per_group():
                return False, "supports scales per tensor, or per row and column, not per block"
        return True, None

    def apply_scaled_mm(
        self,
        *,
        A: Tensor,
        B: Tensor,
        out_dtype: torch.dtype,
        As: Tensor,
        Bs: Tensor,
        bias: Tensor | None,
        output_shape: list[int],
    ) -> Tensor:
        """Return the product, with scales per row and column unless both are single numbers."""
        if As.numel() != 1 or Bs.numel() != 1:
            As = As.reshape(-1, 1).expand(A.shape[0], 1)
            Bs = Bs.reshape(1, -1).expand(1, B.shape[1])
        out = torch._scaled_mm(
            A,
            B,
            scale_a=As.float().contiguous().view(-1, 1),
            scale_b=Bs.float().contiguous().view(1, -1),
            bias=None if bias is None else bias.to(out_dtype),
            out_dtype=out_dtype,
        )
        return out.view(*output_shape)


class Int4Linear(MPLinearKernel):
    """4-bit weights in groups, in GPTQ's packing, with unquantized inputs."""

    @classmethod
    def get_min_capability(cls) -> int:
        """Return 0, which every device supports."""
        return 0

    @classmethod
    def can_implement(cls, c: Any) -> Supported:
        """Return whether PyTorch's product with 4-bit weights supports these weights and groups."""
        if c.weight_type not in (scalar_types.uint4, scalar_types.uint4b8):
            return False, f"supports 4-bit weights, not {c.weight_type}"
        if cls._group(c) is None:
            size, inner = c.group_size, c.partition_weight_shape[0]
            return False, f"supports groups of 32, 64, 128 or 256, not {size} for {inner} inputs"
        return holds(torch.uint8)

    @staticmethod
    def _group(c: Any) -> int | None:
        """Return the group size. A column with one scale becomes several groups of equal scale."""
        inner = c.partition_weight_shape[0]
        sizes = GROUPS if c.group_size == -1 else (c.group_size,)
        return next((size for size in sizes if size in GROUPS and inner % size == 0), None)

    def process_weights_after_loading(self, layer: Any) -> None:
        """Repack the weights, with a scale and a shift for each group."""
        size = self._group(self.config)
        assert size is not None
        packed, scale, zero = self._get_weight_params(layer)
        by_rows = packed.data if packed.input_dim == 1 else packed.data.t()
        numbers = unpack_quantized_values_into_int32(
            by_rows.contiguous(), self.config.weight_type, 1
        )
        scales = scale.data if scale.output_dim == 0 else scale.data.t()
        shifts = torch.zeros_like(scales)
        if self.config.zero_points:
            zeros = zero.data if zero.output_dim == 0 else zero.data.t()
            zeros = unpack_quantized_values_into_int32(
                zeros.contiguous(), self.config.weight_type, 0
            )
            shifts = (8 - zeros).to(scales.dtype) * scales
        repeats = numbers.shape[1] // size // scales.shape[1]
        pairs = torch.stack([scales, shifts], -1).repeat_interleave(repeats, dim=1)
        # The device accepts any of PyTorch's packings; this one supports all sizes.
        replace(layer, self.w_q_name, torch._convert_weight_to_int4pack_for_cpu(numbers, 1))
        pairs = pairs.transpose(0, 1).to(self.config.act_type)
        replace(layer, self.w_s_name, pairs.contiguous())
        if self.w_zp_name is not None and getattr(layer, self.w_zp_name, None) is not None:
            setattr(layer, self.w_zp_name, None)

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the product in the dtype of ``x``."""
        packed, pairs, _ = self._get_weight_params(layer)
        rows = x.reshape(-1, x.shape[-1])
        size = rows.shape[1] // pairs.shape[0]
        out = torch._weight_int4pack_mm_for_cpu(rows, packed, size, pairs)
        if bias is not None:
            out += bias
        return out.view(*x.shape[:-1], -1)


def register() -> None:
    """Register the kernels with vLLM."""
    register_linear_kernel(Int8Linear, PlatformEnum.OOT, "int8")
    register_linear_kernel(Float8Linear, PlatformEnum.OOT, "fp8")
    register_linear_kernel(Int4Linear, PlatformEnum.OOT, "mp")
