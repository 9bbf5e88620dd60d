"""Makes ``torch.from_dlpack`` and ``Tensor.__dlpack_device__`` know this device.

``torch.utils.dlpack.to_dlpack`` needs no help: it describes a tensor of this device as DLPack's
extension device and keeps the index.
"""

from __future__ import annotations

import enum

import torch
from torch.overrides import has_torch_function_unary

from ._build import NAME

__all__: list[str] = []


def setup() -> None:
    """Replace ``Tensor.__dlpack_device__`` by one that answers for this device.

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
