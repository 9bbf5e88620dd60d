"""Regions of autocast: nesting, the cache of casts, gradients, and code that recomputes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import assert_same, needs, needs_two_devices, sample
from torch.utils._python_dispatch import TorchDispatchMode

LOWER = backend.get_amp_supported_dtype()

pytestmark = [
    needs(torch.float32),
    pytest.mark.skipif(not LOWER, reason="generated without a 16-bit floating-point dtype"),
]


class Casts(TorchDispatchMode):
    """Counts the casts that are made inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.count += func is torch.ops.aten._to_copy.default
        return func(*args, **(kwargs or {}))


def weight(seed: int = 0) -> torch.Tensor:
    return sample(4, 4, seed=seed).to(DEVICE).requires_grad_()


def test_a_disabled_region_inside_an_enabled_one_runs_in_float32() -> None:
    matrix = sample(3, 3).to(DEVICE)
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        lower = torch.mm(matrix, matrix)
        with torch.autocast(DEVICE, enabled=False):
            inner = torch.mm(lower.float(), matrix)
        outer = torch.mm(inner, matrix)
    after = torch.mm(matrix, matrix)
    dtypes = [tensor.dtype for tensor in (lower, inner, outer, after)]
    assert dtypes == [LOWER[0], torch.float32, LOWER[0], torch.float32]


def test_the_state_is_restored_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), torch.autocast(DEVICE, dtype=LOWER[0]):
        _ = 1 / 0
    assert not torch.is_autocast_enabled(DEVICE)


def test_regions_of_the_cpu_and_of_the_device_are_independent() -> None:
    ours, theirs = torch.eye(2, device=DEVICE), torch.eye(2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.mm(ours, ours).dtype is torch.float32
        assert torch.mm(theirs, theirs).dtype is torch.bfloat16
        with torch.autocast(DEVICE, dtype=LOWER[0]):
            assert torch.mm(ours, ours).dtype is LOWER[0]
            assert torch.mm(theirs, theirs).dtype is torch.bfloat16


@needs_two_devices
def test_autocast_works_on_a_device_that_is_not_current() -> None:
    matrix = torch.eye(2, device=f"{DEVICE}:1")
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        result = torch.mm(matrix, matrix)
    assert result.dtype is LOWER[0]
    assert result.device == matrix.device


def test_a_weight_is_cast_once_in_a_region() -> None:
    parameter, inputs = weight(), sample(4, 4).to(DEVICE, LOWER[0])
    with Casts() as casts, torch.autocast(DEVICE, dtype=LOWER[0]):
        torch.mm(inputs, parameter)
        with torch.autocast(DEVICE, dtype=LOWER[0]):
            torch.mm(inputs, parameter)
        torch.mm(inputs, parameter)
    assert casts.count == 1


def test_a_weight_that_changed_between_regions_is_cast_again() -> None:
    parameter, identity = weight(), torch.eye(4, device=DEVICE)
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        torch.mm(identity, parameter)
    with torch.no_grad():
        parameter.zero_()
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        assert torch.mm(identity, parameter).abs().max().item() == 0


def test_without_the_cache_a_weight_is_cast_at_every_use() -> None:
    parameter, inputs = weight(), sample(4, 4).to(DEVICE, LOWER[0])
    region = torch.autocast(DEVICE, dtype=LOWER[0], cache_enabled=False)
    with Casts() as casts, region:
        torch.mm(inputs, parameter)
        torch.mm(inputs, parameter)
    assert casts.count == 2


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_gradients_have_the_dtype_and_the_value_of_float32_weights(dtype: torch.dtype) -> None:
    parameter, inputs = weight(), sample(5, 4, seed=1)
    with torch.autocast(DEVICE, dtype=dtype):
        hidden = torch.mm(inputs.to(DEVICE), parameter)
        loss = torch.mm(hidden, parameter).sum()
    assert hidden.dtype is dtype
    assert loss.dtype is torch.float32
    loss.backward()

    other = parameter.detach().cpu().requires_grad_()
    torch.mm(torch.mm(inputs, other), other).sum().backward()
    assert parameter.grad is not None
    assert other.grad is not None
    assert parameter.grad.dtype is torch.float32
    tolerance = 0.02 if dtype is torch.float16 else 0.15
    scale = other.grad.abs().max().item()
    assert_same(parameter.grad, other.grad, rtol=tolerance, atol=tolerance * scale)
