"""Whole training steps by replays, which equal eager steps bit for bit."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from graphs.steps import Optimizer, run
from support import example, may_fall_back, needs

pytestmark = [
    needs(torch.float32, torch.int64, torch.int32, torch.bool),
    pytest.mark.skipif(may_fall_back(), reason="fallbacks cannot be captured"),
]

OPTIMIZERS: dict[str, Optimizer] = {
    "fused SGD": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, fused=True),
    # From PyTorch 2.15 on Adam has to be capturable, fused or not.
    "fused Adam": lambda weights: torch.optim.Adam(weights, lr=0.01, fused=True, capturable=True),
    "fused Adam, lr as a tensor": lambda weights: torch.optim.Adam(
        weights, lr=torch.tensor(0.01, device=DEVICE), fused=True, capturable=True
    ),
    "capturable AdamW": lambda weights: torch.optim.AdamW(weights, lr=0.01, capturable=True),
    "loop": lambda weights: torch.optim.Adam(weights, lr=0.01, capturable=True, foreach=False),
}


def mlp() -> torch.nn.Module:
    """The network of examples/quickstart.py, with dropout where the device draws numbers."""
    torch.manual_seed(0)
    dropout = [torch.nn.Dropout(0.2)] if hasattr(backend, "default_generators") else []
    return torch.nn.Sequential(
        torch.nn.Linear(2, 32), torch.nn.Tanh(), *dropout, torch.nn.Linear(32, 1)
    )


def distance(model: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(inputs), (inputs[:, :1] * inputs[:, 1:]).sin())


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_replayed_steps_of_an_mlp_equal_eager_steps(optimizer: Optimizer) -> None:
    draws = torch.Generator().manual_seed(1)
    batches = [torch.rand(16, 2, generator=draws) * 4 - 2 for _ in range(6)]
    eager = run(mlp(), distance, optimizer, batches, graphed=False)
    assert run(mlp(), distance, optimizer, batches, graphed=True) == eager


def test_replayed_steps_of_a_gpt_equal_eager_steps() -> None:
    gpts = example("gpt")

    def loss_of(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
        scores = model(batch[:, :-1])
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())

    def gpt() -> torch.nn.Module:
        torch.manual_seed(0)
        model: torch.nn.Module = gpts.GPT(width=16, heads=2, layers=2)
        return model

    draws = torch.Generator().manual_seed(0)
    batches = [gpts.passages(draws)[:4] for _ in range(5)]
    adam: Optimizer = lambda weights: torch.optim.AdamW(weights, lr=3e-3, capturable=True)  # noqa: E731
    eager = run(gpt(), loss_of, adam, batches, graphed=False)
    assert run(gpt(), loss_of, adam, batches, graphed=True) == eager


def test_a_grad_scaler_step_in_a_capture_is_refused() -> None:
    if not hasattr(backend, "get_amp_supported_dtype"):
        pytest.skip("generated without amp")
    model = mlp().to(DEVICE)
    scaler = torch.amp.GradScaler(DEVICE)
    inputs = torch.ones(4, 2, device=DEVICE)
    for fused in (False, True):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
        with pytest.raises(RuntimeError, match="GradScaler"), backend.graph(backend.Graph()):
            scaler.scale(distance(model, inputs)).backward()
            scaler.step(optimizer)
            scaler.update()
    assert torch.isfinite(distance(model, inputs)).item()
