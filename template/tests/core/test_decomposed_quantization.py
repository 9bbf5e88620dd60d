"""The quantization operators of exported programs, against the CPU."""

from __future__ import annotations

import pytest
import torch
from core.comparisons import compare
from support import needs, sample

decomposed = pytest.importorskip("torch.ao.quantization.fx._decomposed", reason="gone from torch")
ops = torch.ops.quantized_decomposed

pytestmark = [
    needs(torch.float32, torch.int32, torch.int8, torch.uint8),
    pytest.mark.usefixtures("everything_is_native"),
]
TYPES = [(torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int8, -8, 7)]


@pytest.mark.parametrize("grid", TYPES, ids=str)
def test_per_tensor_quantization(grid: tuple[torch.dtype, int, int]) -> None:
    dtype, *ends = grid
    x = sample(5, 7, 3, low=-20, high=20).transpose(0, 2)
    scale, zero = torch.tensor([0.13]), torch.tensor([2])
    compare(lambda x: ops.quantize_per_tensor(x, 0.13, 2, *ends, dtype), x)
    compare(lambda x, s, z: ops.quantize_per_tensor(x, s, z, *ends, dtype), x, scale, zero)
    codes = ops.quantize_per_tensor(x, 0.13, 2, *ends, dtype)
    compare(lambda x: ops.dequantize_per_tensor(x, 0.13, 2, *ends, dtype), codes)
    compare(lambda x, s, z: ops.dequantize_per_tensor(x, s, z, *ends, dtype), codes, scale, zero)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("grid", TYPES, ids=str)
def test_per_channel_quantization(grid: tuple[torch.dtype, int, int], axis: int) -> None:
    dtype, *ends = grid
    x = sample(3, 4, 5, low=-20, high=20)
    scales = sample(x.size(axis), low=0.05, high=0.3)
    zeros = torch.arange(x.size(axis))
    compare(lambda x, s, z: ops.quantize_per_channel(x, s, z, axis, *ends, dtype), x, scales, zeros)
    codes = ops.quantize_per_channel(x, scales, zeros, axis, *ends, dtype)
    compare(
        lambda x, s, z: ops.dequantize_per_channel(x, s, z, axis, *ends, dtype),
        codes,
        scales,
        zeros,
    )
    compare(lambda x, s: ops.dequantize_per_channel(x, s, None, axis, *ends, dtype), codes, scales)


@needs(torch.bfloat16, torch.float16)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_inputs_of_16_bits_and_empty_inputs(dtype: torch.dtype) -> None:
    x = sample(4, 9, dtype=dtype)
    compare(lambda x: ops.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8), x)
    compare(lambda x: ops.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8), x[:0])
    scales, zeros = torch.ones(9), torch.zeros(9, dtype=torch.int64)
    compare(
        lambda *all: ops.quantize_per_channel(*all, 1, -128, 127, torch.int8), x[:0], scales, zeros
    )
