"""Activation functions and their gradients against the CPU, without a run on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import (
    assert_same,
    close,
    compare,
    compare_gradients,
    needs,
    sample,
)
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("everything_is_native")

ACTIVATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "celu": lambda x: functional.celu(x, 0.7),
    "elu": lambda x: functional.elu(x, 0.7),
    "elu_": lambda x: functional.elu_(x.clone(), 0.7),
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "glu": functional.glu,
    "hardshrink": functional.hardshrink,
    "hardsigmoid": functional.hardsigmoid,
    "hardswish": functional.hardswish,
    "hardtanh": lambda x: functional.hardtanh(x, -2.0, 1.5),
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "logit": lambda x: torch.logit(x.sigmoid(), 0.1),
    "logsigmoid": functional.logsigmoid,
    "mish": functional.mish,
    "prelu": lambda x: functional.prelu(x, torch.tensor(0.2, dtype=x.dtype, device=x.device)),
    "relu": functional.relu,
    "relu6": functional.relu6,
    "selu": functional.selu,
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "softplus": lambda x: functional.softplus(x, 2.0, 3.0),
    "softshrink": lambda x: functional.softshrink(x, 0.7),
    "tanh": torch.tanh,
    "threshold": lambda x: functional.threshold(x, 0.5, -1.0),
}


@needs(torch.float32)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_gradients(name: str) -> None:
    compare(ACTIVATIONS[name], sample(6, 8), **close(torch.float32))
    compare_gradients(ACTIVATIONS[name], sample(6, 8))


@needs(torch.float32)
def test_out_of_a_gradient() -> None:
    values, grad = sample(4, 6), sample(4, 6, seed=1)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (torch.ops.aten.hardtanh_backward, (-1, 1)),
        (torch.ops.aten.leaky_relu_backward, (0.1, False)),
        (torch.ops.aten.softplus_backward, (1, 20)),
        (torch.ops.aten.threshold_backward, (0.5,)),
    ]
    for function, arguments in calls:
        expected = function(grad, values, *arguments)
        out = torch.empty(4, 6, device=DEVICE)
        function(grad.to(DEVICE), values.to(DEVICE), *arguments, grad_input=out)
        assert_same(out, expected)
