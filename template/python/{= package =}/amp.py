"""Automatic mixed precision: ``torch.autocast`` and ``torch.amp.GradScaler`` on this device.

PyTorch calls :func:`get_amp_supported_dtype` whenever it creates an autocast context. The other
functions call ``torch.is_autocast_enabled("<name>")`` and related functions. PyTorch 2.1 looked
them up on the device module, and code of that time still does. The state is per thread.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ._build import NAME
from ._patching import is_wanted
from .devices import dtype_support

__all__ = [
    "get_amp_supported_dtype",
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

PATCHES = ("grad_scaler",)


def setup() -> None:
    """Apply the patch of PyTorch that devices without float64 need."""
    if is_wanted("grad_scaler"):
        _repair_grad_scaler()


def _repair_grad_scaler() -> None:
    """Make gradient scalers divide by the scale in float32 on a device without float64.

    ``torch.amp.GradScaler`` and FSDP's ``ShardedGradScaler`` compute the reciprocal of the scale in
    float64 on its device, except on MPS. The scale is a tensor of one element that only the scaler
    uses. This makes its ``double()`` return the same tensor. Remove this once PyTorch queries the
    dtypes of the device.
    """
    scaler_class: Any = torch.amp.GradScaler
    original = scaler_class._lazy_init_scale_growth_tracker

    @functools.wraps(original)
    def _lazy_init_scale_growth_tracker(self: Any, dev: torch.device) -> None:
        original(self, dev)
        scale = self._scale
        if scale.device.type == NAME and dtype_support(torch.float64, scale.device) != "supported":
            scale.double = lambda: scale

    scaler_class._lazy_init_scale_growth_tracker = _lazy_init_scale_growth_tracker


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes that autocast can cast to: the supported 16-bit dtypes."""
    lower = (torch.float16, torch.bfloat16)
    return [dtype for dtype in lower if dtype_support(dtype) == "supported"]


def is_autocast_enabled() -> bool:
    """Return whether this thread is inside an enabled autocast region of this device."""
    return torch.is_autocast_enabled(NAME)


def get_autocast_dtype() -> torch.dtype:
    """Return the default dtype of this thread's autocast regions."""
    return torch.get_autocast_dtype(NAME)


def set_autocast_enabled(enabled: bool) -> None:
    """Enable or disable autocast for this device in this thread. Prefer ``torch.autocast``."""
    torch.set_autocast_enabled(NAME, enabled)


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Set the default dtype of this thread's autocast regions."""
    torch.set_autocast_dtype(NAME, dtype)
