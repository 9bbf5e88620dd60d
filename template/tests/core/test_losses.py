"""Loss functions against the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from support import assert_same, needs, reports_errors, sample
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("everything_is_native")

TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-5, torch.float64: 1e-12}
REDUCTIONS = ["none", "mean", "sum"]


def compare(
    function: Callable[..., torch.Tensor], values: torch.Tensor, *others: torch.Tensor | None
) -> None:
    """Compare the results of ``function``, and its gradients for the first argument."""
    theirs = values.detach().clone().requires_grad_()
    mine = values.detach().to(DEVICE).requires_grad_()
    on_device = [None if other is None else other.to(DEVICE) for other in others]
    expected, actual = function(theirs, *others), function(mine, *on_device)
    tolerance = TOLERANCE[values.dtype]
    assert_same(actual, expected, rtol=tolerance, atol=tolerance)
    gradient = sample(*expected.shape, dtype=expected.dtype, low=-1, high=1, seed=3)
    expected.backward(gradient)
    actual.backward(gradient.to(DEVICE))
    assert mine.grad is not None and theirs.grad is not None
    assert_same(mine.grad, theirs.grad, rtol=4 * tolerance, atol=4 * tolerance)


@needs(torch.float32)
@reports_errors
@pytest.mark.native
@pytest.mark.parametrize("value", [1.5, -0.1, float("nan")])
def test_binary_cross_entropy_of_what_is_no_probability_is_told(value: float) -> None:
    values = torch.tensor([0.5, value], device=DEVICE)
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        functional.binary_cross_entropy(values, torch.ones_like(values)).item()
    backend.acknowledge_failure()
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        functional.binary_cross_entropy(torch.ones_like(values), values).item()


def test_binary_cross_entropy_of_certain_probabilities() -> None:
    values, target = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])
    expected = functional.binary_cross_entropy(values, target, reduction="none")
    actual = functional.binary_cross_entropy(values.to(DEVICE), target.to(DEVICE), reduction="none")
    assert_same(actual, expected)


@needs(torch.float32)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_loss_of_nothing(reduction: str) -> None:
    labels = torch.zeros(0, dtype=torch.int64)
    compare(lambda x, y: functional.nll_loss(x, y, reduction=reduction), torch.zeros(0, 3), labels)
    labels = torch.full((4,), -100)
    compare(lambda x, y: functional.nll_loss(x, y, reduction=reduction), sample(4, 3), labels)


@needs(torch.float32)
def test_a_probability_of_0_that_is_ignored_does_no_harm() -> None:
    values = torch.tensor([[-torch.inf, 0.0], [0.0, -torch.inf]])
    labels = torch.tensor([1, -100]).to(DEVICE)
    assert functional.nll_loss(values.to(DEVICE), labels).item() == 0


@needs(torch.float32)
def test_out_is_resized_and_written() -> None:
    ops = torch.ops.aten
    values, target = sample(4, 5).to(DEVICE), sample(4, 5, seed=1).to(DEVICE)
    out = torch.empty(0, device=DEVICE)
    ops.mse_loss.out(values, target, 0, out=out)
    assert_same(out, (values.cpu() - target.cpu()) ** 2)
    labels = torch.tensor([0, 4, 2, 1], device=DEVICE)
    total = torch.empty(0, device=DEVICE)
    ops.nll_loss_forward.output(values, labels, None, 2, -100, output=out, total_weight=total)
    assert_same(out, functional.nll_loss(values.cpu(), labels.cpu(), reduction="sum"))
    assert total.item() == 4


@needs(torch.float32)
def test_wrong_arguments_are_refused() -> None:
    values = sample(4, 5).to(DEVICE)
    with pytest.raises(RuntimeError, match="device"):
        functional.mse_loss(values, values.cpu())
    with pytest.raises(RuntimeError, match="device"):
        functional.nll_loss(values, torch.zeros(4, dtype=torch.int64))
    with pytest.raises((RuntimeError, ValueError), match="size"):
        functional.nll_loss(values, torch.zeros(3, dtype=torch.int64, device=DEVICE))
    with pytest.raises(ValueError, match="1D target must have size 1"):
        functional.nll_loss(values[0], torch.zeros(3, dtype=torch.int64, device=DEVICE))
    with pytest.raises(RuntimeError, match="weight tensor should be defined"):
        labels = torch.zeros(4, dtype=torch.int64, device=DEVICE)
        functional.nll_loss(values, labels, torch.ones(3, device=DEVICE))
    with pytest.raises(RuntimeError, match="expected scalar type Float but found"):
        functional.nll_loss(values[:0], labels[:0], torch.ones(5, device=DEVICE).to(torch.uint8))
    with pytest.raises(RuntimeError, match="negative values for beta"):
        torch.ops.aten.smooth_l1_loss(values, values, 1, -1.0)


@needs(torch.float32)
def test_scores_that_are_not_finite() -> None:
    scores = torch.tensor([[1, torch.nan, 2], [torch.inf, 0, 1], [-torch.inf, 0, 1]])
    compare(functional.multi_margin_loss, scores, torch.tensor([0, 2, 0]))
