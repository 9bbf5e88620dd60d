"""torch.func: vmap, jacrev and others over operators with kernels of this backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, sample
from torch import Tensor
from torch.func import grad, jacrev, vmap
from torch.nn import functional

pytestmark = needs(torch.float32, torch.bool)


def attend(x: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(x, x, x)


def attend_causally(x: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(x, x, x.sin(), is_causal=True)


ONES: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "attention": (attend, (2, 2, 5, 4)),
    "causal attention": (attend_causally, (2, 2, 5, 4)),
    "logsigmoid": (functional.logsigmoid, (3, 4)),
    "cdist": (lambda x: torch.cdist(x, x.cos()), (30, 2)),  # fewer rows: see below
    "layer norm": (lambda x: functional.layer_norm(x, (4,)), (3, 4)),
    "convolution": (lambda x: functional.conv2d(x, x[:, :, :2, :2].sin()), (2, 3, 4, 4)),
    "pooling": (lambda x: functional.max_pool2d(x, 2), (2, 3, 4, 4)),
    "gather": (lambda x: x.gather(-1, x.gt(0).long()), (3, 4)),
    "weight norm": (lambda x: torch._weight_norm(x, x[:, :1].abs()), (3, 4)),
}


def of_all(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return grad(lambda x: function(x).square().sum())


@pytest.mark.parametrize("name", ONES)
def test_batches_of_batches_and_their_gradients(name: str) -> None:
    function, shape = ONES[name]
    for mapped in (function, of_all(function)):
        values = sample(2, 3, *shape, low=-1, high=1)
        expected = torch.stack([torch.stack([mapped(x) for x in row]) for row in values])
        assert_same(vmap(vmap(mapped))(values.to(DEVICE)), expected, rtol=1e-4, atol=1e-4)
        assert_same(vmap(mapped)(values[0].to(DEVICE)), expected[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ONES)
def test_jacobians(name: str) -> None:
    function, shape = ONES[name]
    values = sample(*shape, low=-1, high=1)
    expected = torch.autograd.functional.jacobian(function, values)
    assert_same(jacrev(function)(values.to(DEVICE)), expected, rtol=1e-4, atol=1e-4)


def test_jacobians_of_few_distances_are_refused() -> None:
    """PyTorch gives wrong results for them on the CPU: its batching rule ignores the batch."""
    values = sample(3, 4)
    function = lambda x: torch.cdist(x, x.cos())  # noqa: E731
    expected = torch.autograd.functional.jacobian(function, values)
    with pytest.raises(NotImplementedError, match=r"autograd\.functional\.jacobian"):
        jacrev(function)(values.to(DEVICE))
    assert_same(torch.autograd.functional.jacobian(function, values.to(DEVICE)), expected)


def test_attention_over_some_arguments_with_masks() -> None:
    def attend(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(x, y, y, attn_mask=mask)

    queries, keys = sample(3, 2, 2, 5, 4), sample(2, 2, 6, 4, seed=1)
    masks = sample(3, 5, 6, seed=2).gt(-2)
    arguments = (queries, keys, masks)
    expected = torch.stack([attend(x, keys, mask) for x, mask in zip(queries, masks, strict=True)])
    actual = vmap(attend, in_dims=(0, None, 0))(*(x.to(DEVICE) for x in arguments))
    assert_same(actual, expected, rtol=1e-4, atol=1e-4)
