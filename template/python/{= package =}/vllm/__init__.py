"""vLLM on this device: a platform that vLLM finds by itself where this package is installed.

Nothing here imports vLLM before vLLM asks for the platform, through the entry point that
``entry_points.txt`` names.
"""

from __future__ import annotations

__all__ = ["vllm_platform"]


def vllm_platform() -> str | None:
    """Return the class of the platform for vLLM, or None where there is no device.

    vLLM calls this, and drops what it raises. So the class is named for a vLLM of any version, and
    it is the module of the class that refuses one with which it was not tested.
    """
    from .. import devices

    return f"{__name__}.platform.DevicePlatform" if devices.device_count() else None
