"""Checks whether Triton kernels can run on this device.

Triton finds its backends by the entry points ``triton.backends``, and uses the one whose driver is
active.
"""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import importlib.util
from typing import Any

from .._build import NAME
from .._compat import release
from ._compilers import OLDEST


def find_problem() -> str | None:
    """Return why Triton kernels cannot run on this device, or None."""
    if release() < OLDEST:
        return f"Triton needs PyTorch {'.'.join(map(str, OLDEST))} or later"
    if importlib.util.find_spec("triton") is None:
        return f"the package triton is not installed: install it, and its backend for {NAME}"
    try:
        known: Any = importlib.import_module("triton.backends")
        runtime: Any = importlib.import_module("triton.runtime.driver")
    except ImportError as error:  # of Triton itself, or of a backend
        return f"Triton cannot be imported: {error}"
    advice = f"of those installed ({', '.join(sorted(known.backends))}) use, or add, one for {NAME}"
    try:
        device = runtime.driver.active.get_active_torch_device().type
    except RuntimeError as error:  # none is active, or several are
        return f"Triton chooses no backend: {str(error).rstrip('.')}; {advice}"
    return None if device == NAME else f"Triton's active backend is for {device}; {advice}"


def identity() -> str:
    """Return a key that identifies Triton, its backend and its target."""
    from torch.utils._triton import triton_hash_with_backend

    return triton_hash_with_backend()
