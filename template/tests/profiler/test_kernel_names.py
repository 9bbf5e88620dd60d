"""Profiles of kernels that were compiled at run time."""

from __future__ import annotations

import torch
from backend import DEVICE, backend
from profiler.traces import BOTH, RECORDS
from run_time_kernels import TWICE, takes_kernels
from torch.profiler import profile

pytestmark = [*RECORDS, takes_kernels(TWICE)]


def test_a_compiled_kernel_is_recorded_by_name() -> None:
    kernel = backend.compile_kernel(TWICE[backend.kernel_format()], "twice")
    x = torch.ones(1, device=DEVICE)
    with profile(activities=BOTH) as profiled:
        for _ in range(3):
            kernel(args=[x])
        backend.synchronize()
    assert x.item() == 8
    entries = [some for some in profiled.key_averages() if some.key == "twice"]
    assert {entry.count for entry in entries} == {3}
    assert sum(entry.self_device_time_total for entry in entries) > 0
