"""Legacy tensor types, such as ``FloatTensor`` of the device's module."""

from __future__ import annotations

import importlib

import pytest
import torch
from backend import DEVICE, PACKAGE, backend
from support import needs, sample, supported

LEGACY = importlib.import_module(f"{PACKAGE}.legacy")
TYPES = LEGACY.__all__


@pytest.mark.parametrize("name", TYPES)
def test_legacy_type_creates_tensors_as_on_the_cpu(name: str) -> None:
    here, there = getattr(backend, name), getattr(torch, name)
    for arguments in ((), (2, 3), (torch.Size([4]),), ([1, 0, 1],), ([[1], [0]],)):
        made = here(*arguments)
        assert (made.device.type, made.dtype) == (DEVICE, there.dtype)
        assert made.shape == there(*arguments).shape
    assert here([1, 0, 1]).tolist() == there([1, 0, 1]).tolist()


@pytest.mark.parametrize("name", TYPES)
def test_isinstance_works_with_legacy_types(name: str) -> None:
    kind, dtype = getattr(backend, name), getattr(torch, name).dtype
    values = sample(3, dtype=dtype)
    for other in supported():
        assert isinstance(torch.empty(1, dtype=other, device=DEVICE), kind) is (other is dtype)
    assert not isinstance(values, kind)
    assert not isinstance(3, kind)
    moved = values.type(kind)
    assert (moved.device.type, moved.dtype) == (DEVICE, dtype)
    assert moved.type() == f"torch.{DEVICE}.{name}"
    assert repr(kind) == f"<class 'torch.{DEVICE}.{name}'>"
    assert moved.cpu().tolist() == values.tolist()


@needs(torch.float32)
def test_module_moves_by_legacy_type() -> None:
    assert torch.nn.Linear(2, 2).type(backend.FloatTensor).weight.device.type == DEVICE
