"""A device with only a few streams: further streams share them."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from support import is_simulator, needs, run_python

pytestmark = needs(torch.float32)

CODE = f"""
import torch
backend = torch.{DEVICE}
assert backend.get_device_properties(0).max_streams == MOST
streams = [backend.Stream(priority=priority) for priority in (0, -1) for _ in range(20)]
used = {{stream.stream_id for stream in streams}}
assert len(used) == MOST, used
results = []
for stream in streams:
    with backend.stream(stream):
        results.append(torch.ones(1000, device="{DEVICE}").cumsum(0)[-1])
backend.synchronize()
assert {{result.item() for result in results}} == {{1000.0}}
x = torch.ones(4, device="{DEVICE}", requires_grad=True)
backend.synchronize()
with backend.stream(streams[-1]):
    (x * 3).sum().backward()
backend.synchronize()
assert x.grad.tolist() == [3, 3, 3, 3]
"""


@pytest.mark.parametrize("most", [1, 3])
def test_streams_are_shared(most: int) -> None:
    if not is_simulator():
        pytest.skip("the simulator's setting")
    run_python(f"MOST = {most}\n{CODE}", {f"{ENV_PREFIX}_SIMULATOR_STREAMS": str(most)})
