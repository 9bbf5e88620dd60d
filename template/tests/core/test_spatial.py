"""Convolution, pooling, upsampling and padding against the CPU, with their first two gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from backend import DEVICE
from support import (
    FLOATING,
    assert_same,
    natively,
    needs,
    needs_two_devices,
    sample,
    supported,
)

pytestmark = needs(torch.float32)

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float32: 1e-4, torch.float64: 1e-9}
Function = Callable[..., torch.Tensor]


def derivatives(
    function: Function, inputs: Sequence[torch.Tensor], order: int
) -> list[torch.Tensor]:
    """Return the result and its gradients, of gradients' sums of squares up to ``order``."""
    leaves = [value.detach().requires_grad_(order > 0) for value in inputs]
    results = [function(*leaves)]
    for depth in range(order):
        total = sum((result * result).sum() for result in results[-1 if depth == 0 else 1 :])
        more = torch.autograd.grad(total, leaves, create_graph=depth + 1 < order, allow_unused=True)
        results += [gradient for gradient in more if gradient is not None]
    return [result.detach() for result in results]


def compare(
    function: Function, *inputs: torch.Tensor, order: int = 2, oracle: torch.dtype | None = None
) -> None:
    """Compare results and gradients with the CPU's, which computes in ``oracle`` if that is given,
    and that they come from the device.
    """
    dtype = inputs[0].dtype
    tolerance = TOLERANCE.get(dtype, 0)
    expected = derivatives(function, [value.to(oracle or dtype) for value in inputs], order)
    expected = [value.to(dtype) for value in expected] if oracle else expected
    scale = [max(1.0, value.abs().max().item()) if value.numel() else 1.0 for value in expected]
    with natively():
        actual = derivatives(function, [value.to(DEVICE) for value in inputs], order)
    assert len(actual) == len(expected)
    for mine, theirs, size in zip(actual, expected, scale, strict=True):
        assert_same(mine, theirs, rtol=tolerance, atol=tolerance * size)


def layouts(values: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the values in other strides."""
    yield values
    yield values.transpose(-1, -2).contiguous().transpose(-1, -2)
    wide = torch.zeros(*values.shape[:-1], 2 * values.shape[-1] + 1, dtype=values.dtype)
    wide[..., 1::2] = values
    yield wide[..., 1::2]
    if values.dim() == 4:
        yield values.contiguous(memory_format=torch.channels_last)


CONVOLUTIONS: list[tuple[Function, tuple[int, ...], tuple[int, ...], int, dict[str, Any]]] = [
    (F.conv1d, (2, 4, 9), (6, 4, 3), 6, {"padding": 1, "stride": 2}),
    (F.conv1d, (2, 4, 9), (6, 2, 3), 6, {"groups": 2, "dilation": 2}),
    (F.conv2d, (2, 3, 8, 7), (4, 3, 3, 3), 4, {"padding": 1}),
    (F.conv2d, (2, 3, 8, 7), (4, 3, 1, 1), 4, {"stride": 2}),
    (F.conv2d, (2, 4, 8, 7), (8, 1, 3, 3), 8, {"groups": 4, "padding": 1}),
    (F.conv2d, (2, 4, 8, 7), (6, 2, 3, 2), 6, {"groups": 2, "stride": (2, 1), "dilation": (1, 2)}),
    (F.conv2d, (3, 8, 7), (4, 3, 3, 3), 4, {"padding": "same"}),
    (F.conv3d, (1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 3, {"padding": (0, 1, 0), "stride": (1, 2, 1)}),
    (F.conv_transpose1d, (2, 4, 5), (4, 3, 3), 3, {"stride": 2, "output_padding": 1}),
    (F.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 3), 3, {"stride": 2, "padding": 1}),
    (F.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 2), 6, {"groups": 2, "dilation": 2}),
    (
        F.conv_transpose3d,
        (1, 2, 3, 3, 2),
        (2, 2, 2, 2, 2),
        2,
        {"stride": 2, "output_padding": (1, 0, 1)},
    ),
]


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize(("function", "shape", "weights", "channels", "more"), CONVOLUTIONS)
def test_convolution(
    function: Function,
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    channels: int,
    more: dict[str, Any],
    dtype: torch.dtype,
) -> None:
    inputs = [
        sample(*size, dtype=dtype, low=-1, high=1, seed=seed)
        for seed, size in enumerate((shape, weights, (channels,)))
    ]
    # Some CPUs have no right bfloat16 for transposed convolutions in PyTorch 2.15.
    narrow = dtype.itemsize == 2
    oracle = torch.float32 if narrow else None
    compare(partial(function, **more), *inputs, order=1 if narrow else 2, oracle=oracle)
    compare(partial(function, **more), *inputs[:2], order=1, oracle=oracle)


def test_layouts_of_convolutions() -> None:
    values, weights = sample(2, 3, 8, 7), sample(4, 3, 3, 2, seed=1)
    for one in layouts(values):
        for other in layouts(weights):
            compare(partial(F.conv2d, padding=1), one, other)
            compare(partial(F.conv_transpose2d, padding=1), one[:, :, :4], other.transpose(0, 1))


def test_convolution_keeps_channels_last() -> None:
    values = sample(2, 3, 8, 7).to(DEVICE, memory_format=torch.channels_last)
    result = F.conv2d(values, sample(4, 3, 3, 3).to(DEVICE))
    assert result.is_contiguous(memory_format=torch.channels_last)


def test_convolution_of_an_empty_batch_has_gradients() -> None:
    values = torch.zeros(0, 3, 8, 7, device=DEVICE, requires_grad=True)
    weights = sample(4, 3, 3, 3).to(DEVICE).requires_grad_()
    result = F.conv2d(values, weights)
    assert result.shape == (0, 4, 6, 5)
    result.sum().backward()
    assert weights.grad is not None
    assert_same(weights.grad, torch.zeros(4, 3, 3, 3))


def test_convolution_refuses_what_does_not_fit_together() -> None:
    values, weights = sample(2, 3, 8, 7).to(DEVICE), sample(4, 3, 3, 3)
    with pytest.raises(RuntimeError, match="same device"):
        F.conv2d(values, weights)
    with pytest.raises(RuntimeError, match="should be the same"):
        F.conv2d(
            values,
            weights.to(DEVICE, torch.float64 if torch.float64 in supported() else torch.int64),
        )
    with pytest.raises(RuntimeError, match="channels"):
        F.conv2d(values, weights[:, :2].to(DEVICE))


@needs_two_devices
def test_convolution_runs_on_a_device_that_is_not_current() -> None:
    values, weights = sample(2, 3, 8, 7), sample(4, 3, 3, 3, seed=1)
    result = F.conv2d(values.to(f"{DEVICE}:1"), weights.to(f"{DEVICE}:1"))
    assert result.device.index == 1
    assert_same(result, F.conv2d(values, weights), rtol=1e-4, atol=1e-4)


POOLS: list[tuple[str, Function, tuple[int, ...]]] = [
    ("max1d", partial(F.max_pool1d, kernel_size=3, stride=2, padding=1), (2, 3, 9)),
    ("max2d", partial(F.max_pool2d, kernel_size=2), (2, 3, 8, 6)),
    ("max2d_ceil", partial(F.max_pool2d, kernel_size=3, stride=2, ceil_mode=True), (2, 3, 8, 6)),
    ("max2d_dilated", partial(F.max_pool2d, kernel_size=2, dilation=(2, 3)), (3, 8, 7)),
    ("max3d", partial(F.max_pool3d, kernel_size=2, padding=1, stride=2), (2, 3, 5, 4, 6)),
    ("avg1d", partial(F.avg_pool1d, kernel_size=3, stride=2, padding=1), (2, 3, 9)),
    ("avg2d", partial(F.avg_pool2d, kernel_size=2), (2, 3, 8, 6)),
    (
        "avg2d_inside",
        partial(
            F.avg_pool2d,
            kernel_size=3,
            stride=2,
            padding=1,
            ceil_mode=True,
            count_include_pad=False,
        ),
        (2, 3, 8, 6),
    ),
    ("avg2d_padded", partial(F.avg_pool2d, kernel_size=3, padding=1, ceil_mode=True), (2, 3, 8, 6)),
    ("avg2d_divisor", partial(F.avg_pool2d, kernel_size=3, divisor_override=2), (3, 8, 6)),
    ("avg3d", partial(F.avg_pool3d, kernel_size=2, stride=(1, 2, 2)), (2, 3, 5, 4, 6)),
    ("adaptive_avg1d", partial(F.adaptive_avg_pool1d, output_size=4), (2, 3, 9)),
    ("adaptive_avg2d", partial(F.adaptive_avg_pool2d, output_size=(3, 4)), (2, 3, 8, 6)),
    ("adaptive_avg2d_one", partial(F.adaptive_avg_pool2d, output_size=1), (2, 3, 8, 6)),
    ("adaptive_avg3d", partial(F.adaptive_avg_pool3d, output_size=(2, 3, 4)), (2, 3, 5, 4, 6)),
    ("adaptive_max1d", partial(F.adaptive_max_pool1d, output_size=4), (2, 3, 9)),
    ("adaptive_max2d", partial(F.adaptive_max_pool2d, output_size=(3, 4)), (2, 3, 8, 6)),
    ("adaptive_max3d", partial(F.adaptive_max_pool3d, output_size=(2, 3, 4)), (2, 3, 5, 4, 6)),
]


@needs(torch.int64)
@pytest.mark.parametrize(("name", "function", "shape"), POOLS, ids=[name for name, *_ in POOLS])
def test_second_gradients_of_pooling(name: str, function: Function, shape: tuple[int, ...]) -> None:
    compare(function, sample(*shape), order=2)


@needs(torch.int64)
@pytest.mark.parametrize("shape", [(2, 3, 8, 6), (3, 8, 6)])
def test_indices_of_maxima_are_those_of_the_cpu(shape: tuple[int, ...]) -> None:
    values = sample(*shape).round()
    values[..., 3, 2:4] = float("nan")
    for function in (
        partial(F.max_pool2d, kernel_size=3, stride=1, padding=1, return_indices=True),
        partial(F.adaptive_max_pool2d, output_size=3, return_indices=True),
    ):
        expected = function(values)
        with natively():
            actual = function(values.to(DEVICE))
        for mine, theirs in zip(actual, expected, strict=True):
            assert_same(mine, theirs)


@needs(torch.int64)
def test_pooling_keeps_channels_last() -> None:
    values = sample(2, 3, 8, 6).to(DEVICE, memory_format=torch.channels_last)
    for function in (F.max_pool2d, F.avg_pool2d):
        assert function(values, 2).is_contiguous(memory_format=torch.channels_last)


UPSAMPLING: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    *(
        (mode, sizes, shape)
        for mode in ("nearest", "nearest-exact")
        for sizes, shape in (
            ({"scale_factor": 2}, (2, 3, 5)),
            ({"size": 7}, (2, 3, 5)),
            ({"scale_factor": 2}, (2, 3, 5, 4)),
            ({"scale_factor": (3, 2)}, (2, 3, 5, 4)),
            ({"size": (7, 3)}, (2, 3, 5, 4)),
            ({"scale_factor": 1.7, "recompute_scale_factor": False}, (2, 3, 5, 4)),
            ({"size": (7, 3, 6)}, (2, 3, 5, 4, 3)),
        )
    ),
    *(
        (mode, {**sizes, "align_corners": corners}, shape)
        for corners in (False, True)
        for mode, sizes, shape in (
            ("linear", {"size": 7}, (2, 3, 5)),
            ("bilinear", {"scale_factor": 2}, (2, 3, 5, 4)),
            ("bilinear", {"size": (7, 3)}, (2, 3, 5, 4)),
            ("bilinear", {"scale_factor": 0.6}, (2, 3, 5, 9)),
            ("bicubic", {"size": (7, 3)}, (2, 3, 5, 4)),
            ("bicubic", {"scale_factor": 2.3}, (2, 3, 5, 4)),
            ("trilinear", {"size": (7, 3, 6)}, (2, 3, 5, 4, 3)),
        )
    ),
]


@needs(torch.int64, torch.float64)
@pytest.mark.parametrize(("mode", "more", "shape"), UPSAMPLING)
def test_upsampling(mode: str, more: dict[str, Any], shape: tuple[int, ...]) -> None:
    function = partial(F.interpolate, mode=mode, **more)
    for values in layouts(sample(*shape)):
        compare(function, values)
    for dtype in supported(torch.float64, torch.float16, torch.bfloat16):
        compare(function, sample(*shape, dtype=dtype), order=1)


def test_upsampling_keeps_infinity_where_it_is() -> None:
    values = torch.ones(1, 1, 4, 4)
    values[0, 0, 1, 1] = float("inf")
    expected = F.interpolate(values, scale_factor=2, mode="bilinear")
    assert_same(F.interpolate(values.to(DEVICE), scale_factor=2, mode="bilinear"), expected)


PADDINGS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    (mode, padding, shape)
    for mode in ("reflect", "replicate", "constant", "circular")
    for padding, shape in (
        ((2, 1), (2, 3, 5)),
        ((1, 0), (3, 5)),
        ((2, 1, 0, 3), (2, 3, 5, 4)),
        ((1, 2, 1, 0, 2, 1), (2, 3, 5, 4, 3)),
    )
] + [("replicate", (-1, 2, 3, -2), (2, 3, 5, 4)), ("constant", (-1, 2, 3, -2), (2, 3, 5, 4))]


@needs(torch.int64)
@pytest.mark.parametrize(("mode", "padding", "shape"), PADDINGS)
def test_padding(mode: str, padding: tuple[int, ...], shape: tuple[int, ...]) -> None:
    for values in layouts(sample(*shape)):
        compare(partial(F.pad, pad=padding, mode=mode), values)


@needs(torch.int64)
def test_padding_that_is_too_wide_is_refused() -> None:
    with pytest.raises(RuntimeError, match="less than the corresponding input dimension"):
        F.pad(sample(2, 3, 5).to(DEVICE), (5, 0), mode="reflect")


REARRANGEMENTS: list[tuple[Function, tuple[int, ...]]] = [
    (partial(F.pixel_shuffle, upscale_factor=2), (2, 8, 3, 4)),
    (partial(F.pixel_unshuffle, downscale_factor=2), (2, 3, 4, 6)),
    (partial(F.channel_shuffle, groups=2), (2, 6, 3, 4)),
    (partial(F.unfold, kernel_size=(2, 3), dilation=2, padding=1, stride=(1, 2)), (2, 3, 7, 8)),
    (partial(F.unfold, kernel_size=2), (3, 7, 8)),
    (partial(F.fold, output_size=(5, 6), kernel_size=(2, 3), padding=1, stride=2), (2, 18, 9)),
]


@pytest.mark.parametrize(("function", "shape"), REARRANGEMENTS)
def test_rearranging_elements(function: Function, shape: tuple[int, ...]) -> None:
    compare(function, sample(*shape))
