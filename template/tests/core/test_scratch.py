"""Scratch memory that a kernel of several steps releases before its launch ends."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from changed_device import changed_device
from support import needs, run_python

pytestmark = needs(torch.float32)

CODE = f"""
import torch
backend = torch.{DEVICE}
x = torch.empty(4096, device="{DEVICE}")
before = backend.memory_allocated()
backend.reset_peak_memory_stats()
for value in range(20):
    x.fill_(value)
    y = torch.full((2 << 20,), 7.0, device="{DEVICE}")  # may reuse the memory of a step
    assert x.min() == x.max() == value and y.min() == y.max() == 7
    del y
print((backend.max_memory_allocated() - before) >> 20)
"""


@pytest.fixture(scope="module")
def stepping(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    source = Path(__file__).with_name("scratch_device.cpp")
    return changed_device(source, tmp_path_factory.mktemp("stepping"))


@pytest.mark.parametrize("layers", ["", "validate,same_addresses"])
@pytest.mark.parametrize("releases", [False, True])
def test_a_step_reuses_released_scratch_memory(
    stepping: dict[str, str], releases: bool, layers: str
) -> None:
    environment = {
        **stepping,
        "RELEASES": str(int(releases)),
        f"{ENV_PREFIX}_DEVICE_LAYERS": layers,
    }
    peak = int(run_python(CODE, environment).stdout.split()[-1])
    # One or six blocks of 8 MiB, and a tensor of 8 MiB.
    assert peak == (16 if releases else 56)
