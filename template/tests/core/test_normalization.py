"""Layer, RMS, group and batch normalization against the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import FLOATING, assert_same, needs, sample, supported
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("everything_is_native")

TOLERANCE = {torch.float16: 8e-3, torch.bfloat16: 6e-2, torch.float32: 1e-4, torch.float64: 1e-11}
MIXED = [dtype for dtype in supported(torch.float16, torch.bfloat16) if supported(torch.float32)]


def compare(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> None:
    """Compare the results of ``function`` and its gradients for all arguments."""
    theirs = [argument.detach().clone().requires_grad_() for argument in arguments]
    mine = [argument.detach().to(DEVICE).requires_grad_() for argument in arguments]
    expected, actual = function(*theirs), function(*mine)
    tolerance = TOLERANCE[arguments[0].dtype]
    assert_same(actual, expected, rtol=tolerance, atol=tolerance)
    assert actual.stride() == expected.stride()
    gradient = sample(*expected.shape, dtype=expected.dtype, low=-1, high=1, seed=3)
    expected.backward(gradient)
    actual.backward(gradient.to(DEVICE))
    for here, there in zip(mine, theirs, strict=True):
        assert here.grad is not None and there.grad is not None
        tolerance = 4 * TOLERANCE[arguments[0].dtype]
        scale = max(1.0, there.grad.abs().max().item()) if there.grad.numel() else 1.0
        assert_same(here.grad, there.grad, rtol=tolerance, atol=tolerance * scale)


def vector(seed: int) -> torch.Tensor:
    return sample(6, low=0.5, high=2, seed=seed)


@pytest.mark.parametrize("dtype", MIXED, ids=str)
def test_float32_parameters_beside_narrow_inputs(dtype: torch.dtype) -> None:
    weight, bias = vector(1), vector(2)
    values, image = sample(5, 6, dtype=dtype), sample(3, 6, 4, dtype=dtype)
    compare(lambda x, w, b: functional.layer_norm(x, (6,), w, b), values, weight, bias)
    compare(lambda x, w, b: functional.group_norm(x, 2, w, b), image, weight, bias)
    compare(
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        image,
        weight,
        bias,
    )


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
def test_rms_norm_of_tiny_numbers_has_the_eps_of_the_cpu(dtype: torch.dtype) -> None:
    values = sample(4, 6, dtype=dtype) * 2e-4
    compare(lambda x: functional.rms_norm(x, (6,)), values)


@needs(torch.float32)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.layer_norm(x, x.shape),
        lambda x: x.softmax(0),
        lambda x: x.logsumexp(0),
        lambda x: torch.stack([x.norm(), x.std(), x[::2].sum(), (x[None] @ x[:, None])[0, 0]]),
    ],
    ids=["layer_norm", "softmax", "logsumexp", "sums"],
)
def test_one_row_of_a_million(function: Callable[..., torch.Tensor]) -> None:
    """A device may limit how long a work item runs."""
    x = sample(1_000_000, low=0, high=4)
    assert_same(function(x.to(DEVICE)), function(x.double()).float(), rtol=1e-3, atol=1e-6)
