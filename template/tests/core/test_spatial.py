"""Convolution of an empty batch and on another device; upsampling and windows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from backend import DEVICE
from support import (
    assert_same,
    needs,
    needs_two_devices,
    sample,
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


@needs_two_devices
def test_convolution_runs_on_a_device_that_is_not_current() -> None:
    values, weights = sample(2, 3, 8, 7), sample(4, 3, 3, 3, seed=1)
    result = F.conv2d(values.to(f"{DEVICE}:1"), weights.to(f"{DEVICE}:1"))
    assert result.device.index == 1
    assert_same(result, F.conv2d(values, weights), rtol=1e-4, atol=1e-4)


def test_upsampling_keeps_infinity_where_it_is() -> None:
    values = torch.ones(1, 1, 4, 4)
    values[0, 0, 1, 1] = float("inf")
    expected = F.interpolate(values, scale_factor=2, mode="bilinear")
    assert_same(F.interpolate(values.to(DEVICE), scale_factor=2, mode="bilinear"), expected)


def test_windows_that_do_not_advance_are_refused() -> None:
    grad = sample(2, 3).to(DEVICE)
    with pytest.raises(ValueError, match="step is 0 but must be > 0"):
        torch.ops.aten.unfold_backward(grad, [6], 0, 3, 0)
    with pytest.raises(RuntimeError, match="size is -1 but must be >= 0"):
        torch.ops.aten.unfold_backward(grad, [6], 0, -1, 1)
