"""Saving and loading of sparse tensors of this device."""

from __future__ import annotations

import functools
from typing import Any

import torch

from ._build import NAME
from ._patching import is_wanted

__all__: list[str] = []

PATCHES = ("rebuilding",)


def setup() -> None:
    """Patch how PyTorch saves tensors without a storage."""
    if is_wanted("rebuilding"):
        repair_rebuilding()


def repair_rebuilding() -> None:
    """Save sparse tensors as for other devices, and load those that require a gradient.

    PyTorch pickles a tensor of this device without a storage as a CPU tensor, which cannot be
    loaded with a function as ``map_location``. If the tensor requires a gradient, so does the CPU
    tensor, and its copy on the device is not a leaf, which raises. Remove this once PyTorch pickles
    the parts, or detaches before the copy.
    """
    module: Any = torch._utils
    tensor_class: Any = torch.Tensor
    reduce = tensor_class._reduce_ex_internal

    def _reduce_ex_internal(self: torch.Tensor, protocol: int) -> Any:
        if self.device.type != NAME or self.requires_grad or self.is_nested:
            return reduce(self, protocol)
        size = self.size()
        parts: tuple[Any, ...] = ()
        if self.layout is torch.sparse_coo:
            parts = (self._indices(), self._values(), size, self.is_coalesced())
        elif self.layout in (torch.sparse_csr, torch.sparse_bsr):
            parts = (self.crow_indices(), self.col_indices(), self.values(), size)
        elif self.layout in (torch.sparse_csc, torch.sparse_bsc):
            parts = (self.ccol_indices(), self.row_indices(), self.values(), size)
        if not parts:
            return reduce(self, protocol)
        return module._rebuild_sparse_tensor, (self.layout, parts)

    tensor_class._reduce_ex_internal = _reduce_ex_internal
    original = module._rebuild_device_tensor_from_cpu_tensor

    @functools.wraps(original)
    def _rebuild_device_tensor_from_cpu_tensor(
        data: torch.Tensor, dtype: torch.dtype, device: str, requires_grad: bool
    ) -> torch.Tensor:
        if torch.device(device).type == NAME:
            data = data.detach()
            if callable(torch.serialization._serialization_tls.map_location):
                # map_location has already moved the parts.
                return data.requires_grad_(requires_grad)
        tensor: torch.Tensor = original(data, dtype, device, requires_grad)
        return tensor

    module._rebuild_device_tensor_from_cpu_tensor = _rebuild_device_tensor_from_cpu_tensor
