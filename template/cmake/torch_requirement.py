"""Pins the wheel to the PyTorch minor release that it is built against.

PyTorch's C++ interface changes with every minor release, so a wheel works with one of them only. scikit-build-core calls
`dynamic_metadata` while it writes the wheel's metadata.
"""

import re
from collections.abc import Mapping
from typing import Any

from find_torch import find_torch


def dynamic_metadata(
    field: str, settings: Mapping[str, Any], project: Mapping[str, Any] | None = None
) -> list[str]:
    """The project's requirements: those listed in the settings, and the pinned torch."""
    requirements = list(settings.get("requires", []))
    found = find_torch()
    if found is None:
        # CMake reports the missing PyTorch; the metadata does not need it.
        return [*requirements, "torch"]
    major, minor = found[1].split(".")[:2]
    # The version of a nightly build, or of one from source, precedes that of its release.
    early = ".dev0" if re.match(r"[\d.]+?(a|b|rc|\.dev)\d", found[1]) else ""
    return [*requirements, f"torch>={major}.{minor}{early},<{major}.{int(minor) + 1}"]
