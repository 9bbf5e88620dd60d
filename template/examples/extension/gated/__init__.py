"""An operator in C++ with its gradient and its shape, for autograd and torch.compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

(_library,) = Path(__file__).parent.glob("*.so")
torch.ops.load_library(_library)


def silu_mul(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return ``silu(gate) * value``, elementwise, for tensors of one shape and dtype."""
    result: torch.Tensor = torch.ops.gated.silu_mul(gate, value)
    return result


@torch.library.register_fake("gated::silu_mul")
def _shape(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)


def _save(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    gate, value = ctx.saved_tensors
    sigmoid = torch.sigmoid(gate)
    slope = sigmoid * (1 + gate * (1 - sigmoid))
    return gradient * value * slope, gradient * gate * sigmoid


torch.library.register_autograd("gated::silu_mul", _gradients, setup_context=_save)
