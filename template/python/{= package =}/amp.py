"""Automatic mixed precision: ``torch.autocast`` and ``torch.amp.GradScaler`` on this device.

PyTorch calls :func:`get_amp_supported_dtype` whenever it creates an autocast context. The other
functions are what ``torch.is_autocast_enabled("<name>")`` and its relatives say; PyTorch 2.1 looked
them up on the device module, and code of that time still does. The state belongs to a thread.
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
    """Make the repair of PyTorch that devices without float64 need."""
    if is_wanted("grad_scaler"):
        _repair_grad_scaler()


def _repair_grad_scaler() -> None:
    """Let scalers divide by the scale in float32 on a device that does not calculate with float64.

    ``torch.amp.GradScaler`` and FSDP's ``ShardedGradScaler`` make a float64 of the scale on its
    device, to take the reciprocal of it, for every device but Apple's. So the scale, a tensor of
    one element that only the scaler knows, says of itself that it is its own float64. This can go
    once PyTorch asks for the device's dtypes instead.
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
    """Return the dtypes that autocast can cast to: the supported ones of 16 bits."""
    lower = (torch.float16, torch.bfloat16)
    return [dtype for dtype in lower if dtype_support(dtype) == "supported"]


def is_autocast_enabled() -> bool:
    """Return whether this thread is inside an enabled autocast region of this device."""
    return torch.is_autocast_enabled(NAME)


def get_autocast_dtype() -> torch.dtype:
    """Return the dtype that this thread's autocast regions cast to unless they are given one."""
    return torch.get_autocast_dtype(NAME)


def set_autocast_enabled(enabled: bool) -> None:
    """Turn autocast for this device on or off in this thread; ``torch.autocast`` does it better."""
    torch.set_autocast_enabled(NAME, enabled)


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Change the dtype that this thread's autocast regions cast to unless they are given one."""
    torch.set_autocast_dtype(NAME, dtype)
