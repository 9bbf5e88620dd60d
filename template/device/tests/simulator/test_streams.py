"""Streams of the simulator whose launches block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from device_library import needs
from simulator_knobs import Knobs


def test_blocking_launches_have_run_when_they_return(
    simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    code = """
import _device
stream = _device.create_stream(0, 0)
ran = []
for i in range(100):
    _device.launch_host(stream, lambda: ran.append(i))
    assert len(ran) == i + 1
    assert _device.is_idle(stream)
"""
    done = run_child(code, LAUNCH_BLOCKING="1")
    assert done.returncode == 0, done.stderr


def test_a_blocking_launch_throws_its_own_failure(
    simulator: Knobs, run_child: Callable[..., Any]
) -> None:
    needs("check")
    code = """
import _device
stream = _device.create_stream(0, 0)
no = _device.Buffer(0, 1)
no.write(bytes(1))
try:
    _device.check(stream, no.view(0, _device.DType.uint8, [1], [1]), "it is not so")
except _device.DeviceError:
    pass
else:
    raise AssertionError("nothing was thrown")
_device.acknowledge_stream(stream)
_device.synchronize(stream)
"""
    done = run_child(code, LAUNCH_BLOCKING="1")
    assert done.returncode == 0, done.stderr
