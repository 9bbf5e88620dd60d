"""bitsandbytes on this device: the operator of its 8-bit optimizers.

bitsandbytes finds this module by the entry point ``bitsandbytes.backends`` and calls
:func:`register` on import. Its other operators have PyTorch implementations that work as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from .._build import NAME

__all__ = ["register"]

BLOCK = 256
"""The number of elements of a state that share a scale."""


class Step(NamedTuple):
    """The parameters of one step, with bitsandbytes' names."""

    beta1: float
    beta2: float
    beta3: float
    alpha: float
    eps: float
    step: int
    lr: float
    weight_decay: float


Update = Callable[[Step, torch.Tensor, torch.Tensor, list[torch.Tensor]], None]
"""Updates a parameter (second tensor) and its states from a gradient (first tensor), in float32."""


def _decay(now: Step, parameter: torch.Tensor) -> None:
    parameter.mul_(1 - now.lr * now.weight_decay)


def _average(state: torch.Tensor, beta: float, value: torch.Tensor) -> None:
    state.mul_(beta).add_(value, alpha=1 - beta)


def _adam(
    now: Step, gradient: torch.Tensor, parameter: torch.Tensor, states: list[torch.Tensor]
) -> None:
    mean, *slow, variance = states
    _average(mean, now.beta1, gradient)
    variance.mul_(now.beta2).addcmul_(gradient, gradient, value=1 - now.beta2)
    root = (variance.sqrt() / math.sqrt(1 - now.beta2**now.step)).add_(now.eps)
    change = mean / (1 - now.beta1**now.step)
    for other in slow:  # AdEMAMix has a second mean.
        _average(other, now.beta3, gradient)
        change.add_(other, alpha=now.alpha)
    _decay(now, parameter)
    parameter.addcdiv_(change, root, value=-now.lr)


def _momentum(
    now: Step, gradient: torch.Tensor, parameter: torch.Tensor, states: list[torch.Tensor]
) -> None:
    gradient.add_(parameter, alpha=now.weight_decay)
    states[0].mul_(now.beta1 if now.step > 1 else 0).add_(gradient)
    parameter.add_(states[0], alpha=-now.lr)


def _lion(
    now: Step, gradient: torch.Tensor, parameter: torch.Tensor, states: list[torch.Tensor]
) -> None:
    _decay(now, parameter)
    direction = states[0].mul(now.beta1).add_(gradient, alpha=1 - now.beta1).sign_()
    parameter.add_(direction, alpha=-now.lr)
    _average(states[0], now.beta2, gradient)


def _by_squares(
    now: Step, gradient: torch.Tensor, parameter: torch.Tensor, squares: torch.Tensor
) -> None:
    parameter.addcdiv_(gradient, squares.sqrt().add_(now.eps), value=-now.lr)


def _rmsprop(
    now: Step, gradient: torch.Tensor, parameter: torch.Tensor, states: list[torch.Tensor]
) -> None:
    gradient.add_(parameter, alpha=now.weight_decay)
    states[0].mul_(now.beta1).addcmul_(gradient, gradient, value=1 - now.beta1)
    _by_squares(now, gradient, parameter, states[0])


def _adagrad(
    now: Step, gradient: torch.Tensor, parameter: torch.Tensor, states: list[torch.Tensor]
) -> None:
    gradient.add_(parameter, alpha=now.weight_decay)
    states[0].addcmul_(gradient, gradient)
    _by_squares(now, gradient, parameter, states[0])


UPDATES: dict[str, Update] = {
    "adam": _adam,
    "lamb": _adam,
    "ademamix": _adam,
    "momentum": _momentum,
    "lars": _momentum,
    "lion": _lion,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
}


def _update(
    optimizer_name: str,
    g: torch.Tensor,
    p: torch.Tensor,
    state1: torch.Tensor,
    state2: torch.Tensor | None,
    beta1: float,
    beta2: float,
    beta3: float,
    alpha: float,
    eps: float,
    step: int,
    lr: float,
    qmap1: torch.Tensor,
    qmap2: torch.Tensor | None,
    absmax1: torch.Tensor,
    absmax2: torch.Tensor | None,
    weight_decay: float,
    gnorm_scale: float,
    skip_zeros: bool = False,
) -> None:
    if optimizer_name not in UPDATES:
        raise ValueError(f"there is no optimizer {optimizer_name!r} with states of 8 bits")
    # A state in bitsandbytes: codes, the largest value of each block, and the values of the codes.
    pairs = zip(state1, absmax1, strict=True) if absmax1.dim() == 2 else [(state1, absmax1)]
    kept = [(codes, largest, qmap1) for codes, largest in pairs]
    if state2 is not None and absmax2 is not None and qmap2 is not None:
        kept.append((state2, absmax2, qmap2))
    library = torch.ops.bitsandbytes
    states = [
        library.dequantize_blockwise(codes, largest, values, BLOCK, torch.float32)
        for codes, largest, values in kept
    ]
    now = Step(beta1, beta2, beta3, alpha, eps, step, lr, weight_decay)
    parameter = p.float()
    UPDATES[optimizer_name](now, g.float() * gnorm_scale, parameter, states)
    if parameter is not p:
        p.copy_(parameter)
    for state, (codes, largest, values) in zip(states, kept, strict=True):
        new_codes, new_largest = library.quantize_blockwise(state, values, BLOCK)
        codes.copy_(new_codes)
        largest.copy_(new_largest)


def register() -> None:
    """Register the kernel of the operator that bitsandbytes has for some devices only."""
    name = "optimizer_update_8bit_blockwise"
    if hasattr(torch.ops.bitsandbytes, name):
        torch.library.register_kernel(f"bitsandbytes::{name}", NAME, _update)
