"""Repairs of PyTorch where it does not know a backend that is renamed, or left something out.

Each says what PyTorch does, and when the repair can go. None changes anything for other devices.
"""

from __future__ import annotations

import enum
from typing import Any

import torch
from torch import _tensor_str
from torch.overrides import has_torch_function_unary

from ._build import NAME


def apply() -> None:
    """Replace PyTorch's functions. Called once, when the backend has its name."""
    repair_dlpack_device()
    repair_printing()
    repair_autocast_availability()


def repair_dlpack_device() -> None:
    """Let ``torch.from_dlpack`` and ``Tensor.__dlpack_device__`` know this device.

    PyTorch 2.6 to 2.15 compare the device's type with the literal "privateuse1", which is never
    the type of a renamed backend, and raise "Unknown device type". pytorch#195815 repairs it: this
    can go once the oldest supported release has it.
    """
    original = torch.Tensor.__dlpack_device__

    def __dlpack_device__(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        # A subclass that overrides functions is asked first, which the original does.
        if has_torch_function_unary(self) or self.device.type != NAME:
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def repair_printing() -> None:
    """Format the elements of this device's tensors on the CPU.

    PyTorch computes the width of what it prints in float64 on the tensor's device, but for a
    fixed list of devices that have none. A backend may have been generated without float64. This
    can go once PyTorch asks for the device's dtypes instead.
    """
    module: Any = _tensor_str
    original = module._tensor_str

    def _tensor_str_on_cpu(self: torch.Tensor, indent: int) -> Any:
        return original(self.cpu() if self.device.type == NAME else self, indent)

    module._tensor_str = _tensor_str_on_cpu


def repair_autocast_availability() -> None:
    """Let ``torch.amp.is_autocast_available`` say no for a backend without autocast.

    PyTorch says yes for every backend of this kind. ``torch.utils.checkpoint`` believes it and
    makes a context that such a backend cannot have, so checkpointing fails. This can go once
    PyTorch asks the device module.
    """
    original = torch.amp.is_autocast_available

    def is_autocast_available(device_type: str) -> bool:
        if device_type != NAME:
            return original(device_type)
        try:
            torch.autocast(NAME, enabled=False)
        except AssertionError:
            return False
        return True

    torch.amp.is_autocast_available = is_autocast_available
