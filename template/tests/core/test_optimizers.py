"""Fused steps of optimizers against the CPU, without fallbacks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, sample, supported

pytestmark = pytest.mark.usefixtures("everything_is_native")

OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    (torch.optim.Adam, {"lr": 0.1}),
    (torch.optim.Adam, {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    (torch.optim.Adam, {"lr": torch.tensor(0.1)}),
    (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1}),
    (torch.optim.AdamW, {"lr": 0.1, "maximize": True, "amsgrad": True}),
    (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
]


def parameters(device: str) -> list[torch.nn.Parameter]:
    """Return parameters with gradients, one of them transposed."""
    result = []
    for seed, shape in enumerate([(4, 5), (7,), (2, 3, 4), (1,)]):
        values = sample(*shape, seed=seed).to(device)
        parameter = torch.nn.Parameter(values.T if len(shape) == 2 else values)
        parameter.grad = sample(*parameter.shape, seed=seed + 9).to(device)
        result.append(parameter)
    return result


@needs(torch.float32)
@pytest.mark.parametrize("found", [0.0, 1.0])
def test_fused_step_unscales_the_gradients_or_does_nothing(found: float) -> None:
    # Unscaled here: the CPU's fused step assumes equal strides of a parameter and its gradient.
    expected = parameters("cpu")
    if not found:
        for parameter in expected:
            assert parameter.grad is not None
            parameter.grad /= 4
        torch.optim.AdamW(expected, lr=0.1).step()

    mine = parameters(DEVICE)
    stepper = torch.optim.AdamW(mine, lr=0.1, fused=True)
    stepper.grad_scale = torch.full((), 4.0, device=DEVICE)  # type: ignore[attr-defined]
    stepper.found_inf = torch.full((), found, device=DEVICE)  # type: ignore[attr-defined]
    stepper.step()
    for got, wanted in zip(mine, expected, strict=True):
        assert_same(got.detach(), wanted.detach(), rtol=1e-5, atol=1e-6)
        assert got.grad is not None and wanted.grad is not None
        assert_same(got.grad, wanted.grad)


@pytest.mark.parametrize("dtype", supported(torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS, ids=str)
def test_fused_steps_whatever_the_strides(
    optimizer: Any, options: dict[str, Any], dtype: torch.dtype
) -> None:
    values, grad = sample(4, 6, dtype=dtype), sample(4, 6, dtype=dtype, seed=1)

    def final(device: str, **kind: Any) -> list[torch.Tensor]:
        gaps = torch.zeros(4, 12, dtype=dtype, device=device)[:, ::2]
        layouts = [
            (values.T.contiguous().to(device).T, grad.to(device)),
            (values.to(device, copy=True), grad.T.contiguous().to(device).T),
            (gaps.copy_(values), grad.to(device)),
        ]
        parameters = [torch.nn.Parameter(parameter) for parameter, _ in layouts]
        for parameter, (_, gradient) in zip(parameters, layouts, strict=True):
            parameter.grad = gradient
        stepper = optimizer(parameters, **options, **kind)
        for _ in range(3):
            stepper.step()
        return [parameter.detach() for parameter in parameters]

    for got, wanted in zip(final(DEVICE, fused=True), final("cpu", foreach=False), strict=True):
        assert_same(got, wanted, rtol=1e-4, atol=1e-5)
