"""Programs on a difficult device: a seed determines the speed of its streams, launches use scratch
memory, and the addresses of all devices begin at the same number.

A failing seed fails again with ``<PREFIX>_SIMULATOR_SEED`` and the layers of ``PROGRAMS``.
"""

from __future__ import annotations

import pytest
import torch
from backend import ENV_PREFIX
from support import needs, run_python

pytestmark = needs(torch.float32, torch.int64, torch.bool)

GATE = 5
NIGHTLY = 1000
PART = 5


PROGRAMS = """
from backend import backend
from random_delays import programs

backend.set_device_layers(["validate", "same_addresses"])
programs.run(SEED)
"""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.full] if first >= GATE else [])
        for first in range(0, NIGHTLY, PART)
    ],
)
def test_programs_are_correct_with_random_delays(first: int) -> None:
    """Each seed has its own process, because devices and layers last as long as a process."""
    for seed in range(first, first + PART):
        code = PROGRAMS.replace("SEED", str(seed))
        run_python(code, {f"{ENV_PREFIX}_SIMULATOR_SEED": str(seed)})
