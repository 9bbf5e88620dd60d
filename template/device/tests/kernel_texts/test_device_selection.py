"""Selection of a driver's devices by the environment, before and after the driver has started."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import device_library
import pytest

DEVICE = Path(device_library.DEVICE).name
pytestmark = pytest.mark.skipif(
    DEVICE not in ("opencl", "vulkan"), reason="a test of the devices opencl and vulkan"
)
NOT_FOUND = {
    "opencl": "CL_DEVICE_NOT_FOUND (-1): ",
    "vulkan": "VK_ERROR_INCOMPATIBLE_DRIVER (-9): ",
}
# The variable that splits one device into several.
SEVERAL = {"opencl": "OPENCL_SUB_DEVICES", "vulkan": "VULKAN_COPIES"}

Run = Callable[..., subprocess.CompletedProcess[str]]
COUNT = "import _device; print(_device.device_count())"


def test_a_device_is_selected_by_parts_of_its_names(api: ModuleType, run_child: Run) -> None:
    name = api.properties(0).name
    for wanted in (f":{name}", f":{name.upper()[2:-2]}:0", "::0"):
        done = run_child(COUNT, **{f"{DEVICE.upper()}_DEVICE": wanted})
        assert int(done.stdout) >= 1, done.stderr


@pytest.mark.parametrize("wanted", ["no such vendor", ":no such device", "::99"])
def test_a_missing_device_is_named(api: ModuleType, run_child: Run, wanted: str) -> None:
    name = f"{DEVICE.upper()}_DEVICE"
    assert run_child(COUNT, **{name: wanted}).stdout.strip() == "0"
    done = run_child("import _device; _device.properties(0)", **{name: wanted})
    last = done.stderr.strip().splitlines()[-1]
    assert NOT_FOUND[DEVICE] in last
    assert f"{api.ENV_PREFIX}_{name}" in last
    assert api.properties(0).name in last


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (f"{DEVICE.upper()}_DEVICE", "::first", "vendor:name:index"),
        (SEVERAL.get(DEVICE, ""), "0", "a number from 1 to 64"),
        ("LAUNCH_BLOCKING", "yes", "0 or 1"),
    ],
)
def test_an_invalid_value_is_refused(
    api: ModuleType, run_child: Run, name: str, value: str, expected: str
) -> None:
    done = run_child("import _device; _device.properties(0)", **{name: value})
    last = done.stderr.strip().splitlines()[-1]
    assert f"{api.ENV_PREFIX}_{name}={value} is not {expected}" in last
    counted = run_child(COUNT, **{name: value})
    assert counted.stdout.strip() == "0"
    assert len(counted.stderr.strip().splitlines()) == 1


def test_a_device_can_appear_as_several(api: ModuleType, run_child: Run) -> None:
    if DEVICE == "opencl" and api.properties(0).compute_units < 2:
        pytest.skip("needs two compute units")
    code = """
import _device
assert _device.device_count() == 2
for device in range(2):
    buffer = _device.Buffer(device, 8)
    buffer.write(bytes(range(8)))
    assert buffer.read() == bytes(range(8))
"""
    done = run_child(code, **{f"{DEVICE.upper()}_DEVICE": "::0", SEVERAL[DEVICE]: "2"})
    if "the driver does not share out" in done.stderr:
        pytest.skip("the driver does not support sub-devices")
    assert done.returncode == 0, done.stderr
