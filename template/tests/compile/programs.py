"""Programs to compile, and the comparison of compiled runs with eager ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from backend import DEVICE, backend
from torch import Tensor, nn

COUNT = 4
"""Calls of compiled code: first without a graph, then capturing one, then replaying it."""


class Attention(nn.Module):
    """Attention with dropout, in a residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.block(x)
        return result


def layers() -> tuple[nn.Module, Tensor]:
    """Linear layers and dropout."""
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.2), nn.Linear(128, 10))
    return model, torch.randn(16, 64)


def convolutions() -> tuple[nn.Module, Tensor]:
    """Convolutions, norms whose statistics change, and resampling."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.GroupNorm(2, 16),
        nn.Upsample(scale_factor=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )
    return model, torch.randn(2, 3, 16, 16)


def channels_last() -> tuple[nn.Module, Tensor]:
    """Convolutions of channels-last images, and views of their results."""
    model = nn.Sequential(
        nn.ReflectionPad2d(1),
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 5, 3),
        nn.Flatten(),
        nn.Linear(320, 5),
    )
    format = torch.channels_last
    return model.to(memory_format=format), torch.randn(2, 3, 6, 6).to(memory_format=format)


def attention() -> tuple[nn.Module, Tensor]:
    """A block of a transformer."""
    return Attention(), torch.randn(2, 7, 32)


MODELS: list[Callable[[], tuple[nn.Module, Tensor]]] = [
    layers,
    convolutions,
    channels_last,
    attention,
]


@dataclass
class Steps:
    """The outputs, gradients and buffers of some steps."""

    outputs: list[Tensor]
    gradients: list[list[Tensor]]
    buffers: list[Tensor]


def steps(make: Callable[[], tuple[nn.Module, Tensor]], compiled: dict[str, Any] | None) -> Steps:
    """Run forward and backward passes of a model with the same weights, inputs and seeds each time.

    Args:
        make: returns a model and its input.
        compiled: keyword arguments of ``torch.compile``; None runs the model as it is.
    """
    torch.manual_seed(0)
    model, x = make()
    model, x = model.to(DEVICE), x.to(DEVICE)
    callee = model if compiled is None else torch.compile(model, **compiled)
    done = Steps([], [], [])
    for number in range(COUNT):
        torch.manual_seed(number)
        output = callee(x * (number + 1))
        output.square().mean().backward()
        done.outputs.append(output.detach().cpu())
        done.gradients.append(
            [each.grad.cpu() for each in model.parameters() if each.grad is not None]
        )
        model.zero_grad()
    done.buffers = [each.cpu() for each in model.buffers()]
    return done


def assert_same(compiled: dict[str, Any], make: Callable[[], tuple[nn.Module, Tensor]]) -> None:
    """Compare compiled steps with eager ones."""
    expected, actual = steps(make, None), steps(make, compiled)
    for name in ("outputs", "gradients", "buffers"):
        torch.testing.assert_close(getattr(actual, name), getattr(expected, name))


def seeded(function: Callable[..., Any], *inputs: Tensor) -> Any:
    """Seed the device's generator, and call a function."""
    backend.manual_seed(3)
    return function(*inputs)
