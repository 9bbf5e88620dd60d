"""What code outside of the package is built with: see ``utils.cpp_extension``."""

from __future__ import annotations

from pathlib import Path

from .. import _C

__all__ = ["cmake_prefix_path"]

cmake_prefix_path = str(Path(_C.__file__).parent / "share" / "cmake")
"""What CMake's ``CMAKE_PREFIX_PATH`` needs for ``find_package`` to find this package."""
