"""Optimizer steps against the CPU, fused and foreach, without fallbacks."""

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
    (torch.optim.RMSprop, {"lr": 0.1, "centered": True}),
]
SHAPES = [(4, 5), (7,), (2, 3, 4), (1,)]


def parameters(device: str, dtype: torch.dtype) -> list[torch.nn.Parameter]:
    """Return parameters with gradients, one of them transposed."""
    result = []
    for seed, shape in enumerate(SHAPES):
        values = sample(*shape, dtype=dtype, seed=seed).to(device)
        parameter = torch.nn.Parameter(values.T if len(shape) == 2 else values)
        grad = sample(*parameter.shape, dtype=dtype, seed=seed + 9).to(device)
        parameter.grad = grad
        result.append(parameter)
    return result


def steps(device: str, dtype: torch.dtype, optimizer: Any, **options: Any) -> list[torch.Tensor]:
    """Return the parameters after three steps."""
    mine = parameters(device, dtype)
    stepper = optimizer(mine, **options)
    for _ in range(3):
        stepper.step()
    return [parameter.detach() for parameter in mine]


@pytest.mark.parametrize("dtype", supported(torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize("kind", ["fused", "foreach"])
@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS, ids=str)
def test_steps(optimizer: Any, options: dict[str, Any], kind: str, dtype: torch.dtype) -> None:
    if kind == "fused" and optimizer is torch.optim.RMSprop:
        pytest.skip("PyTorch has no fused RMSprop")
    expected = steps("cpu", dtype, optimizer, **options)
    if isinstance(options["lr"], torch.Tensor) and kind != "fused":
        options = {**options, "lr": float(options["lr"])}
    actual = steps(DEVICE, dtype, optimizer, **options, **{kind: True})
    for got, wanted in zip(actual, expected, strict=True):
        assert_same(got, wanted, rtol=1e-4, atol=1e-5)


@needs(torch.float32)
@pytest.mark.parametrize("found", [0.0, 1.0])
def test_fused_step_unscales_the_gradients_or_does_nothing(found: float) -> None:
    # Unscaled here: the CPU's fused step assumes equal strides of a parameter and its gradient.
    expected = parameters("cpu", torch.float32)
    if not found:
        for parameter in expected:
            assert parameter.grad is not None
            parameter.grad /= 4
        torch.optim.AdamW(expected, lr=0.1).step()

    mine = parameters(DEVICE, torch.float32)
    stepper = torch.optim.AdamW(mine, lr=0.1, fused=True)
    stepper.grad_scale = torch.full((), 4.0, device=DEVICE)  # type: ignore[attr-defined]
    stepper.found_inf = torch.full((), found, device=DEVICE)  # type: ignore[attr-defined]
    stepper.step()
    for got, wanted in zip(mine, expected, strict=True):
        assert_same(got.detach(), wanted.detach(), rtol=1e-5, atol=1e-6)
        assert got.grad is not None and wanted.grad is not None
        assert_same(got.grad, wanted.grad)


@needs(torch.float32)
@pytest.mark.parametrize(
    "optimizer",
    [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad],
)
@pytest.mark.parametrize("momentum", [False, True])
def test_strides_of_parameters_and_gradients_differ(optimizer: Any, momentum: bool) -> None:
    options: dict[str, Any] = {"lr": 0.1, "weight_decay": 0.1}
    if momentum and optimizer is torch.optim.SGD:
        options["momentum"] = 0.9
    if momentum and optimizer in (torch.optim.Adam, torch.optim.AdamW):
        options["amsgrad"] = True
    values, grad = sample(4, 6), sample(4, 6, seed=1)

    def final(device: str, **kind: Any) -> list[torch.Tensor]:
        gaps = torch.zeros(4, 12, device=device)[:, ::2]
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
