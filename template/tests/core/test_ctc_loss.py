"""ctc_loss against the CPU, without fallbacks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, sample
from torch.nn.functional import ctc_loss

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

STEPS, BATCH, LABELS = 12, 4, 6
TARGETS = torch.tensor([[1, 2, 2, 3], [5, 5, 5, 0], [4, 1, 0, 0], [2, 0, 0, 0]])
LENGTHS = [4, 3, 2, 0]


def run(device: str, targets: torch.Tensor, inputs: Any, lengths: Any, **options: Any) -> Any:
    """Return the loss and the gradient of the probabilities."""
    leaf = sample(STEPS, BATCH, LABELS).log_softmax(2).to(device).requires_grad_()
    loss = ctc_loss(leaf, targets.to(device), inputs, lengths, **options)
    loss.backward(sample(*loss.shape, low=1, high=2, seed=1).to(device))
    return loss.detach(), leaf.grad


def check(targets: torch.Tensor, inputs: Any, lengths: Any, **options: Any) -> None:
    mine = run(DEVICE, targets, inputs, lengths, **options)
    theirs = run("cpu", targets, inputs, lengths, **options)
    for actual, expected in zip(mine, theirs, strict=True):
        assert_same(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("inputs", [[12, 12, 12, 12], [12, 7, 5, 3]])
def test_padded_and_joined_targets(inputs: list[int], reduction: str) -> None:
    joined = torch.cat([row[:length] for row, length in zip(TARGETS, LENGTHS, strict=True)])
    for targets in (TARGETS, joined, TARGETS.int()):
        check(targets, inputs, LENGTHS, reduction=reduction)


def test_lengths_in_tensors() -> None:
    check(TARGETS, torch.tensor([12, 9, 5, 3]), torch.tensor(LENGTHS))


def test_a_blank_label_other_than_0() -> None:
    check(TARGETS.clamp(max=4), [12] * BATCH, [4, 3, 2, 1], blank=5)


def test_targets_longer_than_their_inputs() -> None:
    inputs = [3, 5, 1, 0]
    for zero_infinity in (False, True):
        check(TARGETS, inputs, LENGTHS, reduction="none", zero_infinity=zero_infinity)
    loss, _ = run(DEVICE, TARGETS, inputs, LENGTHS, reduction="none")
    assert loss.isinf().any()
