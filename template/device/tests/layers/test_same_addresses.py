"""The layer `same_addresses`: devices use the same addresses for different memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from device_library import needs

ALONE = """
import _device as api
first, second = api.Buffer(0, 4096), api.Buffer(1, 4096)
assert first.address == second.address
first.write(bytes([1]) * 4096)
second.write(bytes([2]) * 4096)
api.copy_bytes(api.default_stream(0), (first.address + 8, 0), (second.address, 1), 4)
api.fill_bytes(api.default_stream(1), second.address + 100, 7, 5)
for device in (0, 1):
    api.synchronize_device(device)
assert first.read() == bytes([1] * 8 + [2] * 4 + [1] * 4084)
assert second.read() == bytes([2] * 100 + [7] * 5 + [2] * 3991)
for device, buffer in enumerate((first, second)):
    info = api.describe(device, buffer.address + 17)
    assert info.device == device
    assert info.base <= buffer.address < buffer.address + 4096 <= info.base + info.bytes
print("apart")
"""


@pytest.mark.usefixtures("second_device")
@pytest.mark.parametrize("layers", ["same_addresses", "validate,same_addresses,trace"])
def test_devices_with_the_same_addresses_have_separate_memory(
    run_child: Callable[..., Any], layers: str
) -> None:
    done = run_child(ALONE, DEVICE_LAYERS=layers)
    assert done.stdout == "apart\n", done.stderr


@pytest.mark.usefixtures("second_device")
def test_unique_addresses_are_not_changed(run_child: Callable[..., Any]) -> None:
    code = """
import _device as api
address = api.allocate(1, 64)
print(api.describe(1, address + 1).base == address)
"""
    done = run_child(code, DEVICE_LAYERS="same_addresses")
    assert done.stdout == "True\n", done.stderr


DRAWN = """
import _device as api
logits = [api.Buffer(device, 400) for device in (0, 1)]
states = [api.Buffer(device, 16) for device in (0, 1)]
tokens = [api.Buffer(device, 8) for device in (0, 1)]
for device in (0, 1):
    logits[device].write(bytes(400))
    states[device].write((7 + device).to_bytes(8, "little") + bytes(8))
    params = api.SampleParams()
    params.philox = api.PhiloxState(0, 0, states[device].address)
    out = tokens[device].view(0, api.DType.int64, [1], [1])
    rows = logits[device].view(0, api.DType.float32, [1, 100], [100, 1])
    answer = api.sample(api.default_stream(device), out, rows, params)
    api.synchronize_device(device)
    params.philox = api.PhiloxState(7 + device, 0)
    expected = api.Buffer(device, 8)
    out = expected.view(0, api.DType.int64, [1], [1])
    api.sample(api.default_stream(device), out, rows, params)
    api.synchronize_device(device)
    assert answer is not None or expected.read() == tokens[device].read()
print("skipped" if answer is not None else "same")
"""


@pytest.mark.usefixtures("second_device")
def test_addresses_in_descriptors_are_translated(
    run_child: Callable[..., Any],
) -> None:
    needs("sample")
    done = run_child(DRAWN, DEVICE_LAYERS="same_addresses")
    assert done.stdout in ("same\n", "skipped\n"), done.stderr
