"""Autograd on the device."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, needs_two_devices, sample
from torch import nn

pytestmark = needs(torch.float32)


def test_gradients_accumulate_and_can_be_cleared() -> None:
    leaf = torch.ones(3, device=DEVICE, requires_grad=True)
    for _ in range(2):
        (leaf * 2).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [4, 4, 4]
    assert leaf.grad.device == leaf.device


def test_custom_function_runs_on_the_device() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            assert gradient.device.type == DEVICE
            result: torch.Tensor = gradient * 3 * x**2
            return result

    leaf = torch.full((2,), 2.0, device=DEVICE, requires_grad=True)
    Cube.apply(leaf).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [12, 12]


def test_hooks_see_tensors_of_the_device() -> None:
    seen: list[torch.device] = []
    leaf = torch.ones(2, device=DEVICE, requires_grad=True)
    leaf.register_hook(lambda gradient: seen.append(gradient.device))
    (leaf * 2).sum().backward()
    assert seen == [leaf.device]


def test_graph_may_cross_to_the_cpu_and_back() -> None:
    leaf = torch.ones(3, requires_grad=True)
    (leaf.to(DEVICE) * 2).cpu().mul(3).to(DEVICE).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [6, 6, 6]


@needs_two_devices
def test_graph_may_cross_devices() -> None:
    one = torch.ones(3, device=f"{DEVICE}:0", requires_grad=True)
    other = torch.ones(3, device=f"{DEVICE}:1", requires_grad=True)
    (one.to(other.device) * other * 4).sum().backward()
    assert one.grad is not None and other.grad is not None
    assert one.grad.device == one.device
    assert other.grad.device == other.device
    assert one.grad.tolist() == other.grad.tolist() == [4, 4, 4]


@needs_two_devices
def test_backward_runs_on_the_device_of_the_graph() -> None:
    leaf = torch.ones(3, device=f"{DEVICE}:1", requires_grad=True)
    (leaf * 2).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.device == leaf.device


def test_backward_from_several_threads() -> None:
    results: list[float] = []

    def run() -> None:
        leaf = torch.ones(100, device=DEVICE, requires_grad=True)
        (leaf * 3).sum().backward()
        assert leaf.grad is not None
        results.append(leaf.grad.sum().item())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [300.0] * 4


def test_writing_to_what_backward_needs_is_refused() -> None:
    leaf = torch.ones(2, device=DEVICE, requires_grad=True)
    value = leaf.exp()
    value.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.sum().backward()


def test_functional_transforms_work() -> None:
    values = sample(4, 3)
    on_device = values.to(DEVICE)
    gradient = torch.func.grad(lambda x: (x**2).sum())
    assert_same(gradient(on_device), gradient(values))
    mapped = torch.func.vmap(lambda x: x.sum() * x)
    assert_same(mapped(on_device), mapped(values))


def test_parameters_move_between_devices_in_place() -> None:
    parameter = nn.Parameter(torch.ones(2))
    parameter.data = parameter.data.to(DEVICE)
    assert parameter.device.type == DEVICE
    model = nn.Linear(2, 2)
    weight = model.weight
    model.to(DEVICE)
    assert model.weight is weight
    assert model.weight.device.type == DEVICE
