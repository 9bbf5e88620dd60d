"""Automatic mixed precision: ``torch.autocast`` and ``torch.amp.GradScaler`` on this device.

PyTorch asks :func:`get_amp_supported_dtype` whenever it makes an autocast context. The other
functions are what ``torch.is_autocast_enabled("<name>")`` and its relatives say; PyTorch 2.1 looked
them up on the device module, and code of that time still does. The state belongs to a thread.
"""

from __future__ import annotations

import torch

from ._build import NAME
from .devices import dtype_support

__all__ = [
    "get_amp_supported_dtype",
    "get_autocast_dtype",
    "is_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes that autocast can cast to: those of 16 bits that are computed."""
    lower = (torch.float16, torch.bfloat16)
    return [dtype for dtype in lower if dtype_support(dtype) == "computed"]


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
