"""Loss functions against the CPU."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from core.comparisons import compare
from support import assert_same, compare_gradients, needs, reports_errors, sample
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("everything_is_native")


@needs(torch.float32)
@reports_errors
@pytest.mark.native
@pytest.mark.parametrize("value", [1.5, -0.1, float("nan")])
def test_binary_cross_entropy_reports_values_outside_0_and_1(value: float) -> None:
    values = torch.tensor([0.5, value], device=DEVICE)
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        functional.binary_cross_entropy(values, torch.ones_like(values)).item()
    backend.acknowledge_failure()
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        functional.binary_cross_entropy(torch.ones_like(values), values).item()


def test_binary_cross_entropy_of_0_and_1() -> None:
    values, target = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])
    expected = functional.binary_cross_entropy(values, target, reduction="none")
    actual = functional.binary_cross_entropy(values.to(DEVICE), target.to(DEVICE), reduction="none")
    assert_same(actual, expected)


@needs(torch.float32)
def test_gradients_of_nll_loss_take_one_element_of_any_rank() -> None:
    backward = torch.ops.aten.nll_loss_backward
    for one, total in ((torch.ones(1), torch.tensor(1.0)), (torch.tensor(1.0), torch.ones(1))):
        compare(
            lambda x, y, g, t: backward(g, x, y, None, 1, -100, t),
            sample(5),
            torch.tensor(2),
            one,
            total,
        )


def test_nll_loss_ignores_infinity_at_ignored_labels() -> None:
    values = torch.tensor([[-torch.inf, 0.0], [0.0, -torch.inf]])
    labels = torch.tensor([1, -100]).to(DEVICE)
    assert functional.nll_loss(values.to(DEVICE), labels).item() == 0


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


@needs(torch.float16)
def test_a_delta_that_the_dtype_cannot_represent() -> None:
    values = torch.tensor([1, 300, -70, torch.nan]).half()
    compare_gradients(lambda x: functional.huber_loss(x, torch.zeros_like(x), delta=1e5), values)


@needs(torch.float32)
def test_scores_that_are_not_finite() -> None:
    scores = torch.tensor([[1, torch.nan, 2], [torch.inf, 0, 1], [-torch.inf, 0, 1]])
    labels = torch.tensor([0, 2, 0])
    compare(functional.multi_margin_loss, scores, labels)
    compare_gradients(lambda x: functional.multi_margin_loss(x, labels.to(x.device)), scores)


@needs(torch.float32, torch.float64, torch.int64)
def test_losses_refuse_the_dtypes_that_the_cpu_refuses() -> None:
    for device in ("cpu", DEVICE):
        values = torch.rand(3, device=device)
        with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
            functional.binary_cross_entropy(values, values.double())
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
            functional.huber_loss(values.long(), values)
