"""DLPack, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from backend import DEVICE, backend
from support import assert_same, needs, sample, supported
from torch.utils.dlpack import DLDeviceType, to_dlpack

LAST = torch.device(DEVICE, backend.device_count() - 1)


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_from_dlpack_shares_memory(dtype: torch.dtype) -> None:
    tensor = sample(3, 4, dtype=dtype).to(LAST)
    imported = torch.from_dlpack(tensor.T)
    assert imported.device == LAST
    assert imported.data_ptr() == tensor.data_ptr()
    tensor.zero_()
    assert_same(imported, torch.zeros(4, 3, dtype=dtype))


@needs(torch.float32)
def test_capsules_carry_the_device() -> None:
    tensor = torch.arange(6.0, device=LAST)[2:]
    imported = torch.utils.dlpack.from_dlpack(to_dlpack(tensor))
    assert imported.device == LAST
    assert imported.tolist() == [2, 3, 4, 5]


@needs(torch.float32)
def test_imported_tensor_keeps_the_memory_alive() -> None:
    imported = torch.from_dlpack(torch.full((1000,), 7.0, device=DEVICE))
    torch.full((1000,), 1.0, device=DEVICE)
    assert imported.eq(7).all().item()


@needs(torch.float32)
def test_dlpack_device_names_the_extension_device_and_the_index() -> None:
    assert torch.ones(1, device=LAST).__dlpack_device__() == (DLDeviceType.kDLExtDev, LAST.index)
    assert torch.ones(1).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


@needs(torch.float32)
def test_from_dlpack_copies_when_asked() -> None:
    tensor = torch.ones(3, device=DEVICE)
    copied = torch.from_dlpack(tensor, copy=True)
    tensor.zero_()
    assert copied.tolist() == [1, 1, 1]


@needs(torch.float32)
def test_from_dlpack_moves_between_devices() -> None:
    assert torch.from_dlpack(torch.ones(2, device=DEVICE), device="cpu").tolist() == [1, 1]
    moved = torch.from_dlpack(torch.ones(2), device=torch.device(DEVICE, LAST.index))
    assert moved.device == LAST


@needs(torch.float32)
def test_subclass_that_overrides_functions_is_asked() -> None:
    seen: list[Callable[..., Any]] = []

    class Recorder(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls,
            func: Callable[..., Any],
            types: Any,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.ones(1, device=DEVICE).as_subclass(Recorder)
    assert tensor.__dlpack_device__()[0] == DLDeviceType.kDLExtDev
    assert torch.Tensor.__dlpack_device__ in seen


@needs(torch.float32)
def test_tensors_with_gradients_and_conjugates_are_refused() -> None:
    with pytest.raises(BufferError, match="gradient"):
        torch.from_dlpack(torch.ones(2, device=DEVICE, requires_grad=True))


@needs(torch.float32)
def test_numpy_refuses_the_device() -> None:
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        numpy.from_dlpack(torch.ones(2, device=DEVICE))
    assert numpy.from_dlpack(torch.ones(2)).tolist() == [1, 1]
