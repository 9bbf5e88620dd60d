"""Kernels that were compiled at run time, in profiles."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from profiler.traces import BOTH, RECORDS
from support import has_function
from torch.profiler import profile

SOURCES = {
    "elf-host": "void twice(const Group&, float* x) { *x *= 2; }",
    "opencl-c": "kernel void twice(global float* x) { *x *= 2; }",
}
pytestmark = [
    *RECORDS,
    pytest.mark.skipif(
        not has_function("modules", "load_module") or backend.kernel_format() not in SOURCES,
        reason="the device takes no kernels at run time, or none in a language that this file has",
    ),
]


def test_a_compiled_kernel_has_its_name() -> None:
    kernel = backend.compile_kernel(SOURCES[backend.kernel_format()], "twice")
    x = torch.ones(1, device=DEVICE)
    with profile(activities=BOTH) as profiled:
        for _ in range(3):
            kernel(args=[x])
        backend.synchronize()
    assert x.item() == 8
    entries = [some for some in profiled.key_averages() if some.key == "twice"]
    assert {entry.count for entry in entries} == {3}
    assert sum(entry.self_device_time_total for entry in entries) > 0
