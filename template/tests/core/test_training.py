"""Training: optimizers, checkpointing, and a loop whose loss falls."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, sample
from torch import nn
from torch.utils.checkpoint import checkpoint

pytestmark = needs(torch.float32)

OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    (torch.optim.Adagrad, {"lr": 0.1}),
    (torch.optim.RMSprop, {"lr": 0.01, "centered": True}),
]
FUSED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1))


def train(device: str, optimizer: Any, options: dict[str, Any], steps: int = 4) -> nn.Module:
    model = network().to(device)
    inputs, targets = sample(16, 3).to(device), sample(16, 1, seed=1).to(device)
    stepper = optimizer(model.parameters(), **options)
    for _ in range(steps):
        stepper.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        stepper.step()
    return model


@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS)
@pytest.mark.parametrize("kind", ["default", "foreach", "for loop", "fused"])
def test_optimizer_takes_the_steps_of_the_cpu(
    optimizer: Any, options: dict[str, Any], kind: str
) -> None:
    if kind == "fused" and optimizer not in FUSED:
        pytest.skip(f"PyTorch has no fused {optimizer.__name__}")
    chosen = {
        "default": {},
        "foreach": {"foreach": True},
        "for loop": {"foreach": False},
        "fused": {"fused": True},
    }[kind]
    expected = train("cpu", optimizer, options)
    actual = train(DEVICE, optimizer, {**options, **chosen})
    for mine, theirs in zip(actual.parameters(), expected.parameters(), strict=True):
        assert_same(mine, theirs, rtol=1e-3, atol=1e-4)


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


def test_scaled_dot_product_attention_agrees_with_the_cpu() -> None:
    query, key, value = (sample(2, 3, 5, 4, low=-1, high=1, seed=seed) for seed in range(3))
    for causal in (False, True):
        expected = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        actual = nn.functional.scaled_dot_product_attention(
            query.to(DEVICE), key.to(DEVICE), value.to(DEVICE), is_causal=causal
        )
        assert_same(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv1d(3, 4, 2), (2, 3, 6)),
        (nn.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 5)),
        (nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 4, 4)),
        (nn.BatchNorm1d(3), (5, 3)),
        (nn.GroupNorm(1, 4), (2, 4, 3)),
        (nn.MaxPool2d(2), (1, 2, 6, 6)),
        (nn.AvgPool2d(2), (1, 2, 6, 6)),
        (nn.LSTM(3, 4), (5, 2, 3)),
        (nn.GRU(3, 4), (5, 2, 3)),
        (nn.MultiheadAttention(4, 2), (5, 2, 4)),
        (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (5, 2, 4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_layer_agrees_with_the_cpu(layer: nn.Module, shape: tuple[int, ...]) -> None:
    def run(device: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
        layer.to(device).zero_grad()
        value = sample(*shape).to(device).requires_grad_()
        arguments = [value] * (3 if isinstance(layer, nn.MultiheadAttention) else 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = layer(*arguments)
        result = result[0] if isinstance(result, tuple) else result
        result.pow(2).sum().backward()
        assert value.grad is not None
        gradients = [
            value.grad,
            *(item.grad for item in layer.parameters() if item.grad is not None),
        ]
        # Moving the layer moves its gradients as well.
        return result.detach().cpu(), [gradient.cpu().clone() for gradient in gradients]

    expected, expected_gradients = run("cpu")
    actual, gradients = run(DEVICE)
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-3, atol=1e-3)
