"""Sampling and interpolation: narrow types, antialiasing, and numbers that are not finite."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.comparisons import close, compare
from support import FLOATING, assert_same, compare_gradients, needs, sample, supported
from torch.nn.functional import grid_sample, interpolate

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

PLANE = ((2, 3, 4, 5), (2, 6, 7, 2))


def make(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input and a grid, some of whose points are outside the input."""
    return sample(*shapes[0]), sample(*shapes[1], low=-1.7, high=1.7, seed=1)


def test_narrow_types_are_sampled_in_float32() -> None:
    for dtype in supported(torch.float16, torch.bfloat16):
        image, grid = (tensor.to(dtype) for tensor in make(PLANE))
        actual = grid_sample(image.to(DEVICE), grid.to(DEVICE), align_corners=False)
        expected = grid_sample(image.float(), grid.float(), align_corners=False)
        assert_same(actual, expected.to(dtype), **close(dtype))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(3, 4), (13, 5), (20, 30)])
def test_antialiased_interpolation(mode: str, align_corners: bool, size: tuple[int, int]) -> None:
    def resize(image: torch.Tensor) -> torch.Tensor:
        return interpolate(image, size, mode=mode, align_corners=align_corners, antialias=True)

    for dtype in supported(*FLOATING[:2]):
        compare(resize, sample(2, 3, 11, 9, dtype=dtype), **close(dtype))
    compare_gradients(resize, sample(2, 3, 11, 9))


def test_antialiased_interpolation_of_narrow_types() -> None:
    for dtype in supported(torch.float16, torch.bfloat16):
        image = sample(1, 2, 16, 16, dtype=dtype)
        actual = interpolate(image.to(DEVICE), (5, 7), mode="bilinear", antialias=True)
        expected = interpolate(image.float(), (5, 7), mode="bilinear", antialias=True)
        assert_same(actual, expected.to(dtype), **close(dtype))


def with_nonfinite(*shape: int) -> torch.Tensor:
    """Return a sample with inf, -inf and NaN in its first, middle and last element."""
    tensor = sample(*shape)
    elements = tensor.view(-1)
    elements[0], elements[len(elements) // 2], elements[-1] = torch.inf, -torch.inf, torch.nan
    return tensor


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 3), (5, 6), (9, 8)])
def test_nonfinite_elements_affect_only_results_within_the_filter(
    mode: str, size: tuple[int, int]
) -> None:
    image = with_nonfinite(1, 2, 5, 6)
    compare(lambda image: interpolate(image, size, mode=mode, antialias=True), image)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_nonfinite_elements_and_positions(mode: str, padding: str) -> None:
    """Positions outside the image read no element. Positions that are NaN or infinite give what
    they give on the CPU.
    """
    points = [[5, 5], [1.2, 0.3], [torch.nan, 0.2], [0.1, torch.inf], [-0.9, -0.8], [-torch.inf, 0]]
    grid = torch.tensor(points).view(1, 2, 3, 2)

    def read(image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)

    compare(read, with_nonfinite(1, 2, 3, 3), grid)
    compare(read, sample(1, 2, 3, 3), grid)


def test_gradient_of_grid_sample_is_contiguous() -> None:
    image, grid = (tensor.to(DEVICE) for tensor in make(PLANE))
    image.requires_grad_()
    loss = grid_sample(image, grid, align_corners=False).sum()
    (gradient,) = torch.autograd.grad(loss, image)
    assert gradient.is_contiguous()
    assert gradient.untyped_storage().nbytes() == image.untyped_storage().nbytes()
