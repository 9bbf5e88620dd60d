"""Scratch memory that a kernel of several steps releases before its launch ends."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, PACKAGE
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
def test_a_step_has_the_memory_of_the_one_before(
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


CONVERTED = f"""
import importlib, torch
serving = importlib.import_module("{PACKAGE}.serving")
there = "{DEVICE}"

def column(value, dtype):
    return torch.full((300,), value, dtype=dtype, device=there)

# Drawn from the three largest probabilities, with dtypes that the family does not accept.
logits = torch.tensor([0.05, 0.4, 0.05, 0.2, 0.15, 0.05]).log().repeat(300, 1).to(there)
drawn = serving.top_k_top_p_sample(logits, column(3, torch.int64), temperature=column(2, torch.float64))
assert set(drawn.tolist()) == {{1, 3, 4}}, set(drawn.tolist())

key = torch.ones(4, 2, 8, device=there)
caches = [torch.zeros(2, 4, 2, 8, device=there).to(torch.float8_e4m3fn) for _ in range(2)]
scale = torch.full((2,), 0.5, dtype=torch.float64, device=there)
serving.reshape_and_cache(key, key, *caches, torch.arange(4, device=there), scale, scale)
assert caches[0][0].float().eq(2).all() and caches[1][0].float().eq(2).all()
"""


def test_what_is_made_for_a_call_outlives_it(tmp_path: Path) -> None:
    """A kernel may allocate scratch memory before it reads its arguments."""
    source = Path(__file__).with_name("poisoned_device.cpp")
    run_python(CONVERTED, changed_device(source, tmp_path))
