"""Whether kernels in Triton can run on this device, and what tells what they were made by.

Triton finds its backends by the entry points ``triton.backends``, and uses the one whose driver is active.
"""

# mypy: allow-untyped-calls
# Triton has few types.
from __future__ import annotations

from .._build import NAME
from .._compat import release
from ._compilers import OLDEST


def find_problem() -> str | None:
    """Return why no kernel in Triton can run on this device here, or None."""
    if release() < OLDEST:
        return f"Triton needs PyTorch {'.'.join(map(str, OLDEST))} or later"
    try:
        from triton.backends import backends
        from triton.runtime.driver import driver
    except ImportError:
        return f"the package triton is not installed: install it, and its backend for {NAME}"
    advice = f"the installed backends are {', '.join(sorted(backends))}: install the one for {NAME}"
    try:
        device = driver.active.get_active_torch_device().type
    except RuntimeError as error:  # none is active, or several are
        return f"Triton cannot choose a backend ({error}); {advice}"
    return None if device == NAME else f"Triton's active backend is for {device}; {advice}"


def identity() -> str:
    """Return what tells Triton, its backend and its target apart from others."""
    from torch.utils._triton import triton_hash_with_backend

    return str(triton_hash_with_backend())
