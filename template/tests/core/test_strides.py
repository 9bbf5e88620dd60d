"""Results have the CPU's strides, on which callers depend, for example for views."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

pytestmark = needs(torch.float32, torch.int64)


def transposed(*sizes: int) -> torch.Tensor:
    """Return a tensor whose last two dimensions are swapped in memory."""
    generator = torch.Generator().manual_seed(3)
    return torch.randn(*sizes, generator=generator).mT.contiguous().mT


def channels_last(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes).contiguous(memory_format=torch.channels_last_3d)


POOL = functional.adaptive_avg_pool3d
CALLS: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "ldexp": (torch.ldexp, (transposed(4, 1, 5), transposed(3, 5))),
    "adaptive_avg_pool3d": (lambda x: POOL(x, (2, 3, 2)), (channels_last(2, 3, 4, 4, 4),)),
    "adaptive_avg_pool3d without a batch": (
        lambda x: POOL(x, (2, 3, 2)),
        (channels_last(1, 3, 4, 4, 4)[0],),
    ),
    "indices behind a slice": (lambda x, i: x[:, i], (transposed(1, 6, 5), torch.tensor([3, 0]))),
    "indices in two places": (
        lambda x, i: x[i, :, i, None],
        (torch.randn(4, 1, 4, 3).transpose(0, 3), torch.tensor([[2, 0], [1, 1]])),
    ),
    "transposed indices": (
        lambda x, i: x[:, i],
        (torch.randn(2, 6), torch.tensor([[3, 0, 2], [1, 5, 4]]).mT),
    ),
    "max_pool3d": (lambda x: functional.max_pool3d(x, 2), (channels_last(2, 3, 4, 4, 4),)),
    "max_pool3d of one": (
        lambda x: functional.max_pool3d(x, 2, return_indices=True)[1],
        (channels_last(2, 3, 4, 4, 4)[0],),
    ),
    "nll_loss of images": (
        lambda x, classes: functional.nll_loss(x, classes, reduction="none"),
        (torch.randn(2, 3, 4, 5), torch.zeros(2, 5, 4, dtype=torch.int64).mT),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_strides(name: str) -> None:
    call, arguments = CALLS[name]
    expected = call(*arguments)
    actual = call(*(argument.to(DEVICE) for argument in arguments))
    assert actual.stride() == expected.stride()
    assert_same(actual, expected)


@pytest.mark.parametrize("convolve", [functional.conv2d, functional.conv_transpose2d])
@pytest.mark.parametrize("lasts", [(True, False), (False, True), (False, False)], ids=str)
def test_fake_convolutions_have_the_right_strides(
    convolve: Callable[..., torch.Tensor], lasts: tuple[bool, bool]
) -> None:
    tensors = [torch.randn(3, 3, 4, 4, device=DEVICE) for _ in lasts]
    tensors = [
        (tensor.to(memory_format=torch.channels_last) if last else tensor).requires_grad_()
        for tensor, last in zip(tensors, lasts, strict=True)
    ]

    def strides(*tensors: torch.Tensor) -> list[tuple[int, ...]]:
        result = convolve(*tensors)
        gradients = torch.autograd.grad(result.sum(), tensors)
        return [tensor.stride() for tensor in (result, *gradients)]

    with FakeTensorMode() as mode:
        traced = strides(*map(mode.from_tensor, tensors))
    assert traced == strides(*tensors)
