"""Products with weights of 8 and 4 bits, and of integers, against the CPU."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.comparisons import compare
from support import needs, sample

pytestmark = [
    needs(torch.float32, torch.bfloat16, torch.int8, torch.uint8, torch.int32),
    pytest.mark.usefixtures("everything_is_native"),
]


def integers(low: int, high: int, *sizes: int, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(low, high, sizes, generator=generator).to(dtype)


def check(got: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> None:
    assert got.dtype is dtype
    assert got.device.type == DEVICE
    bound = {torch.float32: 1e-5, torch.bfloat16: 2**-8, torch.float16: 2**-10}[dtype]
    scale = wanted.abs().max()
    torch.testing.assert_close(got.cpu().double() / scale, wanted / scale, rtol=0, atol=bound)


@pytest.mark.parametrize(
    "size", [(1, 16, 8), (17, 33, 9), (64, 3000, 40), (3, 0, 5), (0, 4, 4)], ids=str
)
def test_int_mm(size: tuple[int, int, int]) -> None:
    rows, inner, columns = size
    a, b = integers(-128, 128, rows, inner), integers(-128, 128, inner, columns)
    got = torch._int_mm(a.to(DEVICE), b.to(DEVICE))
    assert got.dtype is torch.int32
    assert got.cpu().equal(a.int() @ b.int())
    transposed = torch._int_mm(a.to(DEVICE), b.t().contiguous().to(DEVICE).t())
    assert transposed.equal(got)


def test_int_mm_of_the_largest_numbers_is_exact() -> None:
    a = torch.full((4, 5000), -128, dtype=torch.int8)
    got = torch._int_mm(a.to(DEVICE), a.t().to(DEVICE))
    assert got.cpu().eq(5000 * 128 * 128).all()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_of_8_bits(dtype: torch.dtype, rows: int) -> None:
    x, weights = sample(rows, 96, dtype=dtype), integers(-128, 128, 40, 96)
    scales = sample(40, low=0.01, high=1, dtype=dtype)
    got = torch._weight_int8pack_mm(x.to(DEVICE), weights.to(DEVICE), scales.to(DEVICE))
    check(got, x.double() @ (weights.double() * scales.double()[:, None]).t(), dtype)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("form", ["device", "cpu"])
def test_weights_of_4_bits_in_groups(form: str, dtype: torch.dtype, group: int, rows: int) -> None:
    columns, inner = 48, 256
    x, codes = sample(rows, inner, dtype=dtype), integers(0, 16, columns, inner, dtype=torch.int32)
    scales_and_zeros = sample(inner // group, columns, 2, low=-1, high=1, dtype=dtype)
    if form == "device":
        bytes_of_two = (codes[:, ::2] << 4 | codes[:, 1::2]).to(torch.uint8).to(DEVICE)
        packed = torch._convert_weight_to_int4pack(bytes_of_two, 4)
        assert packed.shape == (columns // 8, inner // 64, 32, 2)
        multiply = torch._weight_int4pack_mm
    else:
        packed = torch._convert_weight_to_int4pack_for_cpu(codes.to(DEVICE), 1)
        multiply = torch._weight_int4pack_mm_for_cpu
    got = multiply(x.to(DEVICE), packed, group, scales_and_zeros.to(DEVICE))
    scales, zeros = scales_and_zeros.double().repeat_interleave(group, 0).unbind(-1)
    check(got, x.double() @ ((codes.double().t() - 8) * scales + zeros), dtype)


def test_weights_of_4_bits_with_whole_zero_points() -> None:
    columns, inner, group = 24, 128, 32
    x, codes = sample(3, inner), integers(0, 16, columns, inner, dtype=torch.int64)
    scales = sample(inner // group, columns, low=0.1)
    zeros = integers(0, 16, inner // group, columns)
    shifts = torch.arange(8) * 4
    words = (codes.view(columns, -1, 8) << shifts).sum(-1)
    words = torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
    got = torch.ops.aten._weight_int4pack_mm_with_scales_and_zeros(
        x.to(DEVICE), words.to(DEVICE), group, scales.to(DEVICE), zeros.to(DEVICE)
    )
    spread = [tensor.double().repeat_interleave(group, 0) for tensor in (scales, zeros)]
    check(got, x.double() @ ((codes.double().t() - spread[1]) * spread[0]), torch.float32)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("block", [32, 128])
def test_dynamic_quantization_of_inputs(block: int, with_bias: bool) -> None:
    columns, inner = 64, 128
    codes = integers(0, 256, columns, inner // 2, dtype=torch.uint8)
    scales = sample(columns, inner // block, low=0.05, high=0.2)
    if block < inner:
        scales = scales.bfloat16()
    bias = sample(columns) if with_bias else None
    x = sample(5, inner)
    results = []
    for device in ("cpu", DEVICE):
        packed = torch.ops.aten._dyn_quant_pack_4bit_weight(
            codes.to(device), scales.to(device), None if bias is None else bias.to(device),
            block, inner, columns,
        )  # fmt: skip
        results.append(
            torch.ops.aten._dyn_quant_matmul_4bit(x.to(device), packed, block, inner, columns).cpu()
        )
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("use_gelu", [False, True])
def test_products_with_an_activation(use_gelu: bool) -> None:
    compare(
        lambda bias, a, b: torch._addmm_activation(
            bias, a, b, beta=0.5, alpha=2, use_gelu=use_gelu
        ),
        sample(9),
        sample(5, 7),
        sample(7, 9, seed=1),
        rtol=1e-5,
        atol=1e-5,
    )


def test_wrong_arguments_are_refused() -> None:
    x = torch.ones(3, 64, device=DEVICE)
    weights = torch.ones(8, 64, dtype=torch.int8, device=DEVICE)
    scales = torch.ones(8, device=DEVICE)
    with pytest.raises(RuntimeError, match="expect B to be int8"):
        torch._weight_int8pack_mm(x, weights.float(), scales)
    with pytest.raises(RuntimeError, match="expect scales to be 1d"):
        torch._weight_int8pack_mm(x, weights, scales[:7])
    packed = torch._convert_weight_to_int4pack(weights.view(torch.uint8), 2)
    pairs = torch.ones(2, 8, 2, device=DEVICE)
    with pytest.raises(RuntimeError, match="qGroupSize"):
        torch._weight_int4pack_mm(x, packed, 48, pairs)
    with pytest.raises(RuntimeError, match="divisible by 8"):
        torch._convert_weight_to_int4pack(weights[:7].view(torch.uint8), 2)
    with pytest.raises(RuntimeError, match="to be of type int8"):
        torch._int_mm(x, weights.t())
