"""vLLM on this device: a platform that vLLM finds through an entry point.

``entry_points.txt`` names the entry point. Nothing here imports vLLM before vLLM loads it.
"""

from __future__ import annotations

__all__ = ["vllm_platform"]


def vllm_platform() -> str | None:
    """Return the name of the platform class, or None if there is no device.

    vLLM calls this and ignores exceptions. So this returns the name for every version of vLLM, and
    the module of the class raises for untested versions.
    """
    from .. import devices

    return f"{__name__}.platform.DevicePlatform" if devices.device_count() else None
