"""Tensor.<name>(), is_<name>, Module.<name>() and PackedSequence.<name>()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices
from torch import nn
from torch.nn.utils import rnn

pytestmark = needs(torch.float32, torch.int64)

IS_DEVICE = f"is_{DEVICE}"
LAST = backend.device_count() - 1


def move(value: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(value, DEVICE)(*args, **kwargs)


def test_the_tensor_method_and_property() -> None:
    tensor = torch.arange(3)
    moved = move(tensor)
    assert moved.device == torch.device(DEVICE, 0)
    assert getattr(moved, IS_DEVICE) is True
    assert getattr(tensor, IS_DEVICE) is False
    assert moved.cpu().equal(tensor)


def test_tensor_method_returns_a_tensor_of_the_device_itself() -> None:
    tensor = torch.ones(2, device=DEVICE)
    assert move(tensor) is tensor


@pytest.mark.parametrize("device", [LAST, f"{DEVICE}:{LAST}", torch.device(DEVICE, LAST)])
def test_tensor_method_accepts_a_device(device: Any) -> None:
    assert move(torch.ones(2), device).device == torch.device(DEVICE, LAST)


def test_tensor_method_accepts_non_blocking_and_memory_format() -> None:
    tensor = torch.arange(24.0).reshape(1, 2, 3, 4)
    moved = move(tensor, non_blocking=True, memory_format=torch.channels_last)
    assert moved.is_contiguous(memory_format=torch.channels_last)
    assert moved.cpu().equal(tensor)


def test_tensor_method_refuses_a_device_of_another_type() -> None:
    with pytest.raises(RuntimeError, match=f"Invalid device, must be {DEVICE} device"):
        move(torch.ones(1), "cpu")


def test_torch_function_is_called_for_the_method_and_the_property() -> None:
    seen: list[str] = []

    class Recorder(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls,
            func: Callable[..., Any],
            types: Any,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.ones(2).as_subclass(Recorder)
    moved = move(tensor)
    assert seen[0] == DEVICE
    assert isinstance(moved, Recorder)
    seen.clear()
    assert getattr(moved, IS_DEVICE)
    assert seen


def test_module_method_moves_parameters_and_buffers() -> None:
    module = nn.BatchNorm1d(3)
    assert move(module, LAST) is module
    assert {item.device for item in module.state_dict().values()} == {torch.device(DEVICE, LAST)}
    module.cpu()
    assert not any(getattr(parameter, IS_DEVICE) for parameter in module.parameters())


def test_module_method_moves_gradients() -> None:
    module = nn.Linear(2, 2)
    module(torch.ones(1, 2)).sum().backward()
    move(module)
    assert module.weight.grad is not None
    assert getattr(module.weight.grad, IS_DEVICE)


def packed() -> rnn.PackedSequence:
    return rnn.pack_sequence([torch.arange(3.0), torch.arange(2.0)])


def test_the_packed_sequence_method_and_property() -> None:
    sequence = packed()
    moved = move(sequence)
    assert getattr(sequence, IS_DEVICE) is False
    assert getattr(moved, IS_DEVICE) is True
    assert moved.data.cpu().equal(sequence.data)
    unpacked, lengths = rnn.pad_packed_sequence(moved, batch_first=True)
    assert unpacked.device.type == DEVICE
    assert lengths.tolist() == [3, 2]


@needs_two_devices
def test_packed_sequence_method_accepts_a_device() -> None:
    assert move(packed(), f"{DEVICE}:1").data.device == torch.device(DEVICE, 1)


def test_packed_sequence_method_ignores_another_device_type() -> None:
    assert getattr(move(packed(), device="cpu"), IS_DEVICE)
