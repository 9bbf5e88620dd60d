"""Which of OpenCL's devices there are: the environment chooses, before and after the driver has started."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import device_library
import pytest

pytestmark = pytest.mark.skipif(
    Path(device_library.DEVICE).name != "opencl", reason="only this device chooses so"
)

Run = Callable[..., subprocess.CompletedProcess[str]]
COUNT = "import _device; print(_device.device_count())"


def test_a_device_is_chosen_by_parts_of_its_names(api: ModuleType, run_child: Run) -> None:
    name = api.properties(0).name
    for wanted in (f":{name}", f":{name.upper()[2:-2]}:0", "::0"):
        done = run_child(COUNT, **{f"{api.ENV_PREFIX}_OPENCL_DEVICE": wanted})
        assert int(done.stdout) >= 1, done.stderr


@pytest.mark.parametrize("wanted", ["no such vendor", ":no such device", "::99"])
def test_a_device_that_is_not_there_is_none(api: ModuleType, run_child: Run, wanted: str) -> None:
    variable = f"{api.ENV_PREFIX}_OPENCL_DEVICE"
    assert run_child(COUNT, **{variable: wanted}).stdout.strip() == "0"
    done = run_child("import _device; _device.properties(0)", **{variable: wanted})
    last = done.stderr.strip().splitlines()[-1]
    assert "CL_DEVICE_NOT_FOUND (-1): " in last
    assert variable in last
    assert api.properties(0).name in last


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("OPENCL_DEVICE", "::first", "vendor:name:index"),
        ("OPENCL_SUB_DEVICES", "0", "a number from 1 to 64"),
        ("LAUNCH_BLOCKING", "yes", "0 or 1"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused(
    api: ModuleType, run_child: Run, name: str, value: str, expected: str
) -> None:
    variable = f"{api.ENV_PREFIX}_{name}"
    done = run_child("import _device; _device.properties(0)", **{variable: value})
    last = done.stderr.strip().splitlines()[-1]
    assert f"{variable}={value} is not {expected}" in last


def test_a_device_is_shared_out_as_sub_devices(api: ModuleType, run_child: Run) -> None:
    if api.properties(0).compute_units < 2:
        pytest.skip("needs two compute units")
    code = """
import _device
assert _device.device_count() == 2
for device in range(2):
    buffer = _device.Buffer(device, 8)
    buffer.write(bytes(range(8)))
    assert buffer.read() == bytes(range(8))
"""
    environment = {
        f"{api.ENV_PREFIX}_OPENCL_DEVICE": "::0",
        f"{api.ENV_PREFIX}_OPENCL_SUB_DEVICES": "2",
    }
    done = run_child(code, **environment)
    if "the driver does not share out" in done.stderr:
        pytest.skip("the driver makes no sub-devices")
    assert done.returncode == 0, done.stderr
