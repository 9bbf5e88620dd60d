"""Kernels that tests compile at run time, in each source format of devices."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from backend import backend
from support import has_function

TWICE = {
    "elf-host": "void twice(const Group&, float* x) { *x *= 2; }",
    "opencl-c": "kernel void twice(global float* x) { *x *= 2; }",
}
"""A kernel that doubles one number, by source format."""


def takes_kernels(sources: Mapping[str, str]) -> pytest.MarkDecorator:
    """Skip a test if the device accepts none of these source formats."""
    return pytest.mark.skipif(
        not has_function("modules", "load_module") or backend.kernel_format() not in sources,
        reason="the device takes no kernels at run time, or no source format of this file",
    )
