"""Convolution, pooling, upsampling and padding: strides, devices, special values and refusals."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from backend import DEVICE
from support import (
    assert_same,
    compare,
    natively,
    needs,
    needs_two_devices,
    sample,
    supported,
)

pytestmark = needs(torch.float32)


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


def test_upsampling_keeps_infinity_where_it_is() -> None:
    values = torch.ones(1, 1, 4, 4)
    values[0, 0, 1, 1] = float("inf")
    expected = F.interpolate(values, scale_factor=2, mode="bilinear")
    assert_same(F.interpolate(values.to(DEVICE), scale_factor=2, mode="bilinear"), expected)


@needs(torch.int64)
def test_padding_that_is_too_wide_is_refused() -> None:
    with pytest.raises(RuntimeError, match="less than the corresponding input dimension"):
        F.pad(sample(2, 3, 5).to(DEVICE), (5, 0), mode="reflect")


def test_windows_that_do_not_advance_are_refused() -> None:
    grad = sample(2, 3).to(DEVICE)
    with pytest.raises(ValueError, match="step is 0 but must be > 0"):
        torch.ops.aten.unfold_backward(grad, [6], 0, 3, 0)
    with pytest.raises(RuntimeError, match="size is -1 but must be >= 0"):
        torch.ops.aten.unfold_backward(grad, [6], 0, -1, 1)


def test_windows_are_put_together_again() -> None:
    fold = partial(F.fold, output_size=(5, 6), kernel_size=(2, 3), padding=1, stride=2)
    compare(fold, sample(2, 18, 9))
