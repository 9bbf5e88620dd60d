"""Autograd over devices and threads."""

from __future__ import annotations

import threading

import torch
from backend import DEVICE
from support import needs, needs_two_devices
from torch import nn

pytestmark = needs(torch.float32)


@needs_two_devices
def test_graph_may_cross_devices() -> None:
    one = torch.ones(3, device=f"{DEVICE}:0", requires_grad=True)
    other = torch.ones(3, device=f"{DEVICE}:1", requires_grad=True)
    (one.to(other.device) * other * 4).sum().backward()
    assert one.grad is not None and other.grad is not None
    assert one.grad.device == one.device
    assert other.grad.device == other.device
    assert one.grad.tolist() == other.grad.tolist() == [4, 4, 4]


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


def test_parameters_move_between_devices_in_place() -> None:
    parameter = nn.Parameter(torch.ones(2))
    parameter.data = parameter.data.to(DEVICE)
    assert parameter.device.type == DEVICE
    model = nn.Linear(2, 2)
    weight = model.weight
    model.to(DEVICE)
    assert model.weight is weight
    assert model.weight.device.type == DEVICE
