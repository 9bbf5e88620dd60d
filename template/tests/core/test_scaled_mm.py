"""Products of float8 and float4 matrices with scales, against float64 on the CPU."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import needs, since

E4M3, E5M2, E8M0 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu
FLOAT4 = torch.float4_e2m1fn_x2
SIZES = [(16, 32, 24), (3, 5, 7), (1, 256, 16), (130, 300, 140)]
"""Rows, inner size, columns."""

pytestmark = [
    needs(torch.float32, torch.bfloat16),
    pytest.mark.usefixtures("everything_is_native"),
]


def numbers(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def positive(*sizes: int, seed: int = 0) -> torch.Tensor:
    return numbers(*sizes, seed=seed).abs() + 0.1


def factors(rows: int, inner: int, columns: int, dtype: torch.dtype = E4M3) -> list[torch.Tensor]:
    return [numbers(rows, inner).to(dtype), numbers(columns, inner, seed=1).to(dtype).t()]


def spread(scale: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Return a scale for each element, from one for each block."""
    for dim, size in ((0, rows), (1, columns)):
        repeats = -(-size // scale.size(dim))
        if scale.size(dim) > 1:
            repeats = next(block for block in (1, 16, 32, 128) if scale.size(dim) * block >= size)
        scale = scale.float().repeat_interleave(repeats, dim).narrow(dim, 0, size)
    return scale


def expected(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
) -> torch.Tensor:
    """``scale_a`` and ``scale_b`` have one number for each block of ``a`` and ``b``."""
    return (a.double() * spread(scale_a, *a.shape)) @ (b.double() * spread(scale_b, *b.shape))


def check(result: torch.Tensor, wanted: torch.Tensor, tolerance: float = 1e-5) -> None:
    assert result.device.type == DEVICE
    scale = wanted.abs().max().clamp_min(1)
    torch.testing.assert_close(
        result.cpu().double() / scale, wanted / scale, rtol=0, atol=tolerance
    )


def on_device(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.to(DEVICE) for tensor in tensors]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtypes", [(E4M3, E4M3), (E5M2, E4M3), (E5M2, E5M2)], ids=str)
def test_per_tensor_scales(
    size: tuple[int, int, int], dtypes: tuple[torch.dtype, torch.dtype]
) -> None:
    a, b = factors(*size)[0].to(dtypes[0]), factors(*size)[1].to(dtypes[1])
    scale_a, scale_b = torch.tensor(0.5), torch.tensor([3.0])
    got = torch._scaled_mm(*on_device(a, b, scale_a, scale_b), out_dtype=torch.float32)
    check(got, expected(a, b, scale_a.view(1, 1), scale_b.view(1, 1)))
    assert got.dtype is torch.float32


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_per_row_scales_with_a_bias(size: tuple[int, int, int], with_bias: bool) -> None:
    rows, _, columns = size
    a, b = factors(*size)
    scale_a, scale_b = positive(rows, 1), positive(1, columns, seed=1)
    bias = numbers(columns, seed=2).bfloat16() if with_bias else None
    got = torch._scaled_mm(
        *on_device(a, b, scale_a, scale_b),
        bias=None if bias is None else bias.to(DEVICE),
        out_dtype=torch.bfloat16,
    )
    wanted = expected(a, b, scale_a, scale_b) + (bias.double() if bias is not None else 0)
    check(got, wanted, 2**-8)
    assert got.dtype is torch.bfloat16


@pytest.mark.parametrize("b_lines", [1, 128])
@pytest.mark.parametrize("a_lines", [1, 128])
@pytest.mark.parametrize("size", [(16, 256, 24), (130, 300, 140)], ids=str)
def test_block_scales(size: tuple[int, int, int], a_lines: int, b_lines: int) -> None:
    rows, inner, columns = size
    a, b = factors(*size)
    scale_a = positive(-(-rows // a_lines), -(-inner // 128))
    scale_b = positive(-(-inner // 128), -(-columns // b_lines), seed=1)
    if scale_a.numel() == 1 or scale_b.numel() == 1:
        pytest.skip("the sizes give one block")
    got = torch._scaled_mm(*on_device(a, b, scale_a, scale_b), out_dtype=torch.float32)
    check(got, expected(a, b, scale_a, scale_b))


def swizzled(scale: torch.Tensor) -> torch.Tensor:
    """Return scales of (lines, blocks) in the tiled order of tensor cores."""
    lines, blocks = scale.shape
    high, wide = -(-lines // 128), -(-blocks // 4)
    padded = torch.zeros(high * 128, wide * 4)
    padded[:lines, :blocks] = scale.float()
    tiles = padded.view(high, 4, 32, wide, 4).permute(0, 3, 2, 1, 4)
    return tiles.reshape(-1).to(scale.dtype)


@pytest.mark.parametrize("in_tiles", [False, True])
@pytest.mark.parametrize("size", [(16, 64, 24), (130, 320, 140)], ids=str)
def test_microscaling(size: tuple[int, int, int], in_tiles: bool) -> None:
    rows, inner, columns = size
    a, b = factors(*size)
    scale_a = torch.exp2(numbers(rows, inner // 32).round()).to(E8M0)
    scale_b = torch.exp2(numbers(columns, inner // 32, seed=1).round()).to(E8M0)
    given = [swizzled(scale) if in_tiles else scale for scale in (scale_a, scale_b)]
    got = torch._scaled_mm(*on_device(a, b, *given), out_dtype=torch.float32)
    check(got, expected(a, b, scale_a.float(), scale_b.float().t()))


FLOAT4_VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def float4(rows: int, inner: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return packed pairs along the inner dimension, and their values."""
    codes = torch.randint(16, (rows, inner), generator=torch.Generator().manual_seed(seed))
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8).view(FLOAT4)
    return packed, FLOAT4_VALUES[codes]


@since((2, 11), "has _scaled_mm_v2 as it is now")
@pytest.mark.parametrize("levels", [1, 2])
def test_float4_with_scales_of_one_and_two_levels(levels: int) -> None:
    from torch.nn.functional import ScalingType, SwizzleType, scaled_mm

    rows, inner, columns = 32, 64, 48
    (a, a_values), (b, b_values) = float4(rows, inner, 0), float4(columns, inner, 1)
    scales = [positive(rows, inner // 16).to(E4M3), positive(columns, inner // 16, seed=1).to(E4M3)]
    whole = [torch.tensor(0.25), torch.tensor(1.5)]
    recipe = [ScalingType.BlockWise1x16, ScalingType.TensorWise][:levels]
    swizzle = [SwizzleType.SWIZZLE_32_4_4, SwizzleType.NO_SWIZZLE][:levels]
    sides = [
        on_device(swizzled(scale), factor)[:levels]
        for scale, factor in zip(scales, whole, strict=True)
    ]
    bias = numbers(columns, seed=3)
    got = scaled_mm(
        a.to(DEVICE),
        b.to(DEVICE).t(),
        sides[0],
        recipe,
        sides[1],
        recipe,
        swizzle,
        swizzle,
        bias=bias.to(DEVICE),
        output_dtype=torch.float32,
    )
    wanted = expected(a_values, b_values.t(), scales[0].float(), scales[1].float().t())
    if levels == 2:
        wanted = wanted * 0.25 * 1.5
    check(got, wanted + bias)


@since((2, 11), "has _scaled_mm_v2 as it is now")
@pytest.mark.parametrize("recipe", ["TensorWise", "RowWise", "BlockWise1x128", "BlockWise128x128"])
def test_recipes(recipe: str) -> None:
    from torch.nn.functional import ScalingType, scaled_mm

    a, b = factors(256, 512, 128)
    blocks = {"TensorWise": (256, 512), "RowWise": (1, 512), "BlockWise1x128": (1, 128)}
    lines, width = blocks.get(recipe, (128, 128))
    scale_a = positive(256 // lines, 512 // width)
    scale_b = positive(max(128 // lines, 1), 512 // width, seed=1)
    given_b = scale_b.t() if recipe == "BlockWise128x128" else scale_b
    kind = getattr(ScalingType, recipe)
    got = scaled_mm(
        a.to(DEVICE), b.to(DEVICE), scale_a.to(DEVICE), kind, given_b.to(DEVICE), kind,
        output_dtype=torch.float32,
    )  # fmt: skip
    check(got, expected(a, b, scale_a, scale_b.t()))


def test_results_of_float8_saturate_and_take_a_scale() -> None:
    a, b = torch.full((16, 32), 100.0).to(E4M3), torch.full((32, 16), 100.0).to(E4M3)
    one = torch.tensor(1.0)
    got = torch._scaled_mm(*on_device(a, b, one, one))
    assert got.dtype is E4M3
    assert got.cpu().float().eq(448).all()
    given = dict(scale_result=torch.tensor(2.0**-10, device=DEVICE))
    scaled = torch._scaled_mm(*on_device(a, b, one, one), **given)
    inner = a.float().matmul(b.float())
    assert scaled.cpu().float().equal((inner * 2.0**-10).to(E4M3).float())


def test_sizes_of_0() -> None:
    one = torch.tensor(1.0, device=DEVICE)
    for rows, inner, columns in ((0, 32, 16), (3, 0, 7), (3, 16, 0)):
        a, b = on_device(*factors(rows, inner, columns))
        got = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)
        assert got.shape == (rows, columns)
        assert not got.cpu().any()


def test_out_is_resized_and_fake_tensors_agree() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    a, b = on_device(*factors(16, 32, 24))
    one = torch.tensor(1.0, device=DEVICE)
    out = torch.empty(0, dtype=torch.float32, device=DEVICE)
    torch._scaled_mm(a, b, one, one, out_dtype=torch.float32, out=out)
    result = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)
    assert out.equal(result)
    with FakeTensorMode() as mode:
        arguments = [mode.from_tensor(tensor) for tensor in (a, b, one, one)]
        fake = torch._scaled_mm(*arguments, out_dtype=torch.float32)
    assert (fake.shape, fake.stride(), fake.dtype) == (result.shape, result.stride(), result.dtype)
    assert fake.device == result.device


@pytest.mark.parametrize(
    "dtype",
    [torch.int32, torch.int8, torch.int64, torch.bool, torch.float64, torch.complex64, FLOAT4],
    ids=str,
)
def test_an_unsupported_out_dtype_is_refused(dtype: torch.dtype) -> None:
    a, b = on_device(*factors(16, 32, 24))
    one = torch.tensor(1.0, device=DEVICE)
    experts, ends = b.expand(2, 32, 24), torch.tensor([4, 16], dtype=torch.int32, device=DEVICE)
    scales = torch.ones(16, device=DEVICE), torch.ones(2, 24, device=DEVICE)
    with pytest.raises(ValueError, match="give out_dtype as one of these"):
        torch._scaled_mm(a, b, one, one, out_dtype=dtype)
    with pytest.raises(ValueError, match="give out_dtype as one of these"):
        torch._scaled_grouped_mm(a, experts, *scales, ends, out_dtype=dtype)
