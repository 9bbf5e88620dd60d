"""Autograd, and models that train to the losses of the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from smoke.helpers import layouts
from support import assert_same, sample
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x + x / 2,
        lambda x: x.tanh().sum(0),
        lambda x: x @ x.t(),
        lambda x: x[:, 1:] * x[:, :-1],
        lambda x: x.expand(2, 3, 4).prod(-1),
        lambda x: x.softmax(-1),
        lambda x: x[torch.tensor([0, 0, 2], device=x.device)],
        lambda x: x.flatten().cumsum(0),
        lambda x: torch.where(x > 0, x, x * x),
        lambda x: x.max(1).values,
        lambda x: x.norm(),
    ],
)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_gradients(function: Callable[[torch.Tensor], torch.Tensor], layout: str) -> None:
    gradients = []
    for device in ("cpu", DEVICE):
        leaf = layouts(3, 4)[layout].to(device).requires_grad_()
        result = function(leaf)
        weights = sample(*result.shape, seed=1).to(device)
        (result * weights).sum().backward()
        assert leaf.grad is not None
        gradients.append(leaf.grad)
    assert_same(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


def test_gradients_accumulate_cross_devices_and_differentiate_twice() -> None:
    leaf = sample(4).requires_grad_()
    for _ in range(2):
        (leaf.to(DEVICE) * 3).cpu().sum().backward()
    assert leaf.grad is not None and torch.equal(leaf.grad, torch.full((4,), 6.0))
    x = sample(4).to(DEVICE).requires_grad_()
    (first,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert_same(second, 6 * sample(4))


def test_an_autograd_function_in_python() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    leaf = sample(4).to(DEVICE).requires_grad_()
    Double.apply(leaf).sum().backward()
    assert leaf.grad is not None
    assert_same(leaf.grad, torch.full((4,), 2.0))


def test_no_grad_inference_mode_and_version_checks() -> None:
    leaf = torch.ones(2, device=DEVICE, requires_grad=True)
    with torch.no_grad():
        assert not (leaf + 1).requires_grad
    with torch.inference_mode():
        assert (leaf + 1).is_inference()
    changed = leaf * 1
    result = changed.exp()
    result.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


class Attention(nn.Module):
    """A small transformer that classifies sequences of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.head(self.block(self.embedding(tokens)).mean(1))
        return output


class Recurrent(nn.Module):
    """An LSTM that classifies sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 8, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.head(self.lstm(sequences)[0][:, -1])
        return output


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)
    )


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 4),
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "mlp": (mlp, sample(8, 6)),
    "convolutions": (convolutions, sample(8, 2, 4, 4)),
    "lstm": (Recurrent, sample(8, 5, 3)),
    "transformer": (Attention, torch.arange(40).view(8, 5) % 16),
}
OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    "adamw": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01),
}


def losses(
    model: nn.Module, optimizer: str, inputs: torch.Tensor, device: str, steps: int = 6
) -> list[float]:
    """Train a copy of a model on a device, and return the loss of each step."""
    model = copy.deepcopy(model).to(device)
    update = OPTIMIZERS[optimizer](model)
    inputs, targets = inputs.to(device), (torch.arange(len(inputs)) % 4).to(device)
    result = []
    for _ in range(steps):
        update.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        result.append(loss.item())
    return result


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_trains_to_the_losses_of_the_cpu(name: str, optimizer: str) -> None:
    make, inputs = MODELS[name]
    model = make()
    expected = losses(model, optimizer, inputs, "cpu")
    assert expected[-1] < expected[0]
    assert losses(model, optimizer, inputs, DEVICE) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_loader_pins_its_batches(workers: int) -> None:
    loader = DataLoader(
        TensorDataset(sample(10, 3), torch.arange(10)), batch_size=4, pin_memory=True,
        num_workers=workers,
    )  # fmt: skip
    seen = []
    for inputs, numbers in loader:
        assert inputs.is_pinned()
        assert_same(inputs.to(DEVICE, non_blocking=True), sample(10, 3)[numbers])
        seen.extend(numbers.to(DEVICE).tolist())
    assert seen == list(range(10))


def test_a_model_evaluates_as_on_the_cpu() -> None:
    model = Attention().eval()
    tokens = torch.arange(40).view(8, 5) % 16
    with torch.no_grad():
        expected = model(tokens)
        assert_same(model.to(DEVICE)(tokens.to(DEVICE)), expected, rtol=1e-4, atol=1e-5)
    assert all(parameter.device.type == DEVICE for parameter in model.parameters())
    assert backend.current_stream() == backend.default_stream()
