"""Programs on a device that is as unkind as it may be: its streams work at a pace that a seed decides,
the addresses of all devices begin at the same number, and scratch memory calls back.

A seed that fails fails again: ``<PREFIX>_SIMULATOR_SEED=7 <PREFIX>_DEVICE_LAYERS=validate,same_addresses``.
"""

from __future__ import annotations

import multiprocessing
import os

import pytest
import torch
from backend import ENV_PREFIX
from support import needs

pytestmark = needs(torch.float32, torch.int64, torch.bool)

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["torch"])

GATE = 20
NIGHTLY = 1000
PART = 10


def _run(seed: int) -> None:
    os.environ[f"{ENV_PREFIX}_SIMULATOR_SEED"] = str(seed)
    from backend import backend
    from unkind import programs

    backend.set_device_layers(["validate", "same_addresses"])
    programs.run(seed)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.full] if first >= GATE else [])
        for first in range(0, NIGHTLY, PART)
    ],
)
def test_programs_are_right_however_late_the_device_is(first: int) -> None:
    """Each seed in a process of its own, as devices and layers last as long as it."""
    for seed in range(first, first + PART):
        process = context.Process(target=_run, args=(seed,))
        process.start()
        process.join(120)
        if process.exitcode is None:
            process.kill()
        assert process.exitcode == 0, f"seed {seed} ended with {process.exitcode}"
