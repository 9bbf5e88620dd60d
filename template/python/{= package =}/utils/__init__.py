"""Tools to build code outside of the package: see ``utils.cpp_extension``."""

from __future__ import annotations

from pathlib import Path

from .. import _C

__all__ = ["cmake_prefix_path"]

cmake_prefix_path = str(Path(_C.__file__).parent / "share" / "cmake")
"""The path to add to ``CMAKE_PREFIX_PATH`` so that ``find_package`` finds this package."""
