"""grid_sample and antialiased interpolation against the CPU, natively."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from support import (
    FLOATING,
    assert_same,
    close,
    compare,
    compare_gradients,
    needs,
    sample,
    supported,
)
from torch.nn.functional import grid_sample, interpolate

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

PLANE = ((2, 3, 4, 5), (2, 6, 7, 2))
VOLUME = ((2, 3, 4, 5, 3), (2, 3, 4, 2, 3))
PADDINGS = ("zeros", "border", "reflection")
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def make(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input and a grid, a third of which points beyond the input."""
    return sample(*shapes[0]), sample(*shapes[1], low=-1.7, high=1.7, seed=1)


def with_gradients(device: str, tensors: tuple[torch.Tensor, ...], **options: Any) -> Any:
    leaves = [tensor.to(device).requires_grad_() for tensor in tensors]
    result = grid_sample(*leaves, **options)
    result.backward(sample(*result.shape, seed=2).to(device))
    return [result.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize(
    ("shapes", "mode"),
    [
        (PLANE, "bilinear"),
        (PLANE, "nearest"),
        (PLANE, "bicubic"),
        (VOLUME, "bilinear"),
        (VOLUME, "nearest"),
    ],
)
def test_grid_sample_and_its_gradients(
    shapes: Any, mode: str, padding: str, align_corners: bool
) -> None:
    options = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    mine = with_gradients(DEVICE, make(shapes), **options)
    theirs = with_gradients("cpu", make(shapes), **options)
    for actual, expected in zip(mine, theirs, strict=True):
        assert_same(actual, expected, **TOLERANCE)


def test_a_plane_of_one_element_and_an_empty_grid() -> None:
    for padding in PADDINGS:
        for align_corners in (False, True):
            compare(
                lambda image, grid, p=padding, a=align_corners: grid_sample(
                    image, grid, padding_mode=p, align_corners=a
                ),
                sample(1, 2, 1, 1),
                sample(1, 3, 2, 2, seed=1),
            )
    compare(
        lambda image, grid: grid_sample(image, grid, align_corners=False),
        sample(1, 2, 3, 3),
        torch.empty(1, 0, 2, 2),
    )


def test_narrow_types_are_sampled_in_float32() -> None:
    for dtype in supported(torch.float16, torch.bfloat16):
        image, grid = (tensor.to(dtype) for tensor in make(PLANE))
        actual = grid_sample(image.to(DEVICE), grid.to(DEVICE), align_corners=False)
        expected = grid_sample(image.float(), grid.float(), align_corners=False)
        assert_same(actual, expected.to(dtype), **close(dtype))


def test_a_grid_of_another_type_or_size_is_refused() -> None:
    image, grid = (tensor.to(DEVICE) for tensor in make(PLANE))
    with pytest.raises(RuntimeError, match="same batch size"):
        grid_sample(image, grid[:1], align_corners=False)
    for other in supported(torch.float64, torch.bfloat16)[:1]:
        with pytest.raises(RuntimeError, match="expected scalar type Float but found"):
            grid_sample(image, grid.to(other), align_corners=False)


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
