"""Convolution of an empty batch, and upsampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from backend import DEVICE
from support import assert_same, needs, sample

pytestmark = needs(torch.float32)


def test_convolution_of_an_empty_batch_has_gradients() -> None:
    values = torch.zeros(0, 3, 8, 7, device=DEVICE, requires_grad=True)
    weights = sample(4, 3, 3, 3).to(DEVICE).requires_grad_()
    result = F.conv2d(values, weights)
    assert result.shape == (0, 4, 6, 5)
    result.sum().backward()
    assert weights.grad is not None
    assert_same(weights.grad, torch.zeros(4, 3, 3, 3))


@pytest.mark.parametrize("convolution", [F.conv_transpose1d, F.conv_transpose2d])
def test_output_padding_is_less_than_stride_or_dilation(convolution: Callable[..., Any]) -> None:
    rank = int(convolution.__name__[-2])
    values, weights = (torch.ones(1, 1, *[3] * rank, device=DEVICE) for _ in range(2))
    assert convolution(values, weights, dilation=3, output_padding=2).shape[2:] == (11,) * rank
    with pytest.raises(RuntimeError, match="smaller than either stride or dilation"):
        convolution(values, weights, stride=2, output_padding=2)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.5, 1.2, 2, 2.3])
def test_nearest_upsampling_uses_the_scale_that_was_given(rank: int, scale: float) -> None:
    """The scale is also used if the sizes stay the same or double."""
    for size in (3, 4):
        values = sample(1, 2, *[size] * rank)
        expected = F.interpolate(values, scale_factor=scale, mode="nearest")
        assert_same(F.interpolate(values.to(DEVICE), scale_factor=scale, mode="nearest"), expected)


@pytest.mark.parametrize("mode", ["replicate", "reflect"])
@pytest.mark.parametrize("padding", [(0, 0, 0, -2), (-2, 1, 0, -1), (1, 1, -1, -1)], ids=str)
def test_negative_padding_may_leave_nothing(padding: tuple[int, ...], mode: str) -> None:
    values = sample(2, 2, 2, 3)
    expected = F.pad(values, padding, mode)
    assert expected.numel() == 0 or padding[0] == -2
    assert_same(F.pad(values.to(DEVICE), padding, mode), expected)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_without_a_kernel_or_an_output_are_refused(rank: int) -> None:
    convolve: Callable[..., Any] = getattr(F, f"conv{rank}d")
    transposed: Callable[..., Any] = getattr(F, f"conv_transpose{rank}d")
    values, weights = (torch.ones(1, 1, *[size] * rank, device=DEVICE) for size in (2, 1))
    for function in (convolve, transposed):
        with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
            function(values, weights[..., :0])
    with pytest.raises(RuntimeError, match="Output size is too small"):
        transposed(values, weights, padding=1)


@pytest.mark.parametrize("kind", ["reflection", "replication"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_padding_are_on_the_device_of_the_input(rank: int, kind: str) -> None:
    backward = getattr(torch.ops.aten, f"{kind}_pad{rank}d_backward")
    gradient, values = (torch.ones(1, 1, *[size] * rank) for size in (5, 3))
    for arguments in ((gradient.to(DEVICE), values), (gradient, values.to(DEVICE))):
        with pytest.raises(RuntimeError, match="same device"):
            backward(*arguments, [1] * 2 * rank)


def test_upsampling_keeps_infinity_where_it_is() -> None:
    values = torch.ones(1, 1, 4, 4)
    values[0, 0, 1, 1] = float("inf")
    expected = F.interpolate(values, scale_factor=2, mode="bilinear")
    assert_same(F.interpolate(values.to(DEVICE), scale_factor=2, mode="bilinear"), expected)


@pytest.mark.parametrize(("gradient", "given"), [((4,), (4,)), ((2, 4, 2, 2), (2, 3, 4, 4))])
def test_gradients_of_adaptive_averages_check_their_sizes(
    gradient: tuple[int, ...], given: tuple[int, ...]
) -> None:
    sizes = (torch.ones(each, device=DEVICE) for each in (gradient, given))
    with pytest.raises(RuntimeError, match=r"_adaptive_avg_pool2d_backward.*: Expected"):
        torch.ops.aten._adaptive_avg_pool2d_backward(*sizes)


@pytest.mark.parametrize("sizes", [(2, 0, 7, 7, 7), (2, 3, 0, 7, 7)], ids=str)
def test_adaptive_averages_over_three_dimensions_need_elements(sizes: tuple[int, ...]) -> None:
    for device in ("cpu", DEVICE):
        with pytest.raises(RuntimeError, match="non-zero size"):
            F.adaptive_avg_pool3d(torch.zeros(sizes, device=device), 2)
