"""The NPU of device/tests/npu trains a GPT, and serves it from weights of int8."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maintenance.installing import Installed

pytestmark = [
    pytest.mark.xdist_group("npu"),
    pytest.mark.nightly,
]

# A fallback would be an error.
TRAINING = """
import sys, torch
sys.path.append("examples")
import gpt
assert torch.foo.get_device_name(0) == "Tiny NPU"
losses = gpt.train("foo", 30, "bf16")
assert losses[-1] < losses[0] / 2, losses
plans = torch.foo.plan_stats()
assert 0 < plans["misses"] < plans["hits"], plans
torch.testing.assert_close(gpt.train("foo", 2), gpt.train("cpu", 2), rtol=1e-4, atol=0)
"""

SERVING = """
import sys, torch
from torch import nn
sys.path.append("examples")
import gpt

class Int8(nn.Module):
    def __init__(self, layer):
        super().__init__()
        weight = layer.weight.detach().float()
        scales = weight.abs().amax(1) / 127
        self.register_buffer("weight", (weight / scales[:, None]).round().to(torch.int8))
        self.register_buffer("scales", scales.bfloat16())
        self.register_buffer("bias", layer.bias)

    def forward(self, x):
        out = torch._weight_int8pack_mm(x.flatten(0, -2), self.weight, self.scales)
        return out.unflatten(0, x.shape[:-1]) + self.bias

torch.manual_seed(0)
model = gpt.GPT().bfloat16().eval()
for module in list(model.modules()):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and child.bias is not None:
            setattr(module, name, Int8(child))
letters = torch.randint(len(gpt.LETTERS), (3, 20))
with torch.no_grad():
    wanted = model(letters).float()
    model.to("foo")
    got = model(letters.to("foo")).float().cpu()
torch.testing.assert_close(got, wanted, rtol=0.1, atol=0.1)
assert model.write("after one").endswith(".")
"""


@pytest.fixture(scope="module")
def run(
    install: Callable[..., Installed], build_device: Callable[[Installed, str, Path], None]
) -> Callable[[str], None]:
    """Return a function that runs a program with the NPU's library instead of the simulator's."""
    full = install("full", preset="full")
    build = full.project / "build" / "npu"
    build_device(full, "tests/npu", build)

    def run(program: str) -> None:
        done = full.run("-c", program, LD_LIBRARY_PATH=str(build), FOO_FALLBACK="error")
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]

    return run


@pytest.mark.parametrize("program", [TRAINING, SERVING], ids=["training", "serving"])
def test_a_gpt_runs_on_the_npu_without_a_fallback(program: str, run: Callable[[str], None]) -> None:
    run(program)
