"""Training: checkpointing, and a loop whose loss falls."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from backend import DEVICE
from support import needs, sample
from torch import nn
from torch.utils.checkpoint import checkpoint

pytestmark = needs(torch.float32)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1))


def test_loss_falls() -> None:
    model = network().to(DEVICE)
    inputs = sample(64, 3).to(DEVICE)
    targets = inputs.sum(1, keepdim=True).sin()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def gradient_of(use_checkpoint: bool, reentrant: bool) -> torch.Tensor:
    def block(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x * 2, 0.5, training=True)

    torch.manual_seed(5)
    leaf = torch.ones(200, device=DEVICE, requires_grad=True)
    run = partial(checkpoint, block, use_reentrant=reentrant) if use_checkpoint else block
    result = run(leaf)
    torch.rand(10, device=DEVICE)
    result.sum().backward()
    assert leaf.grad is not None
    return leaf.grad.cpu()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_draws_the_same_dropout_again(reentrant: bool) -> None:
    checkpointed = gradient_of(True, reentrant)
    assert checkpointed.equal(gradient_of(False, reentrant))
    assert 0 < checkpointed.count_nonzero() < 200
