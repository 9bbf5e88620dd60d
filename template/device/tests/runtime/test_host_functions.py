"""Host functions: called once, in stream order, on another thread."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs, needs_property
from host_memory import at
from making import Make

pytestmark = pytest.mark.usefixtures("host_functions")


def test_a_host_function_runs_once(api: ModuleType, stream: Any) -> None:
    calls: list[int] = []
    api.launch_host(stream, lambda: calls.append(1))
    api.synchronize(stream)
    api.synchronize(stream)
    assert calls == [1]


def test_a_host_function_runs_in_stream_order(api: ModuleType, make: Make, stream: Any) -> None:
    buffer, address = make.buffer(16), make.pinned(16)
    memory = at(address, 16)
    memory[:] = 0
    seen: list[set[int]] = []

    def look_and_change() -> None:
        seen.append({int(value) for value in memory})
        memory[:] = 9

    api.fill_bytes(stream, buffer.address, 5, 16)
    api.copy_bytes(stream, (address, api.HOST), (buffer.address, 0), 16)
    api.launch_host(stream, look_and_change)
    api.copy_bytes(stream, (buffer.address, 0), (address, api.HOST), 16)
    api.synchronize(stream)
    assert seen == [{5}]
    assert set(buffer.read()) == {9}


def test_a_host_function_can_wait_for_one_of_another_stream(api: ModuleType, make: Make) -> None:
    first, second = make.stream(), make.stream()
    reached = threading.Event()
    api.launch_host(first, reached.wait)
    api.launch_host(second, reached.set)
    api.synchronize(first)
    assert reached.is_set()


def test_launching_a_host_function_does_not_wait(api: ModuleType, stream: Any, gate: Any) -> None:
    gate.hold(stream)
    gate.wait_until_reached()
    api.launch_host(stream, lambda: None)
    assert not api.is_idle(stream)


AFTER_A_FAILURE = """
import _device as api

stream, no, calls = api.create_stream(0, 0), api.Buffer(0, 1), []
no.write(bytes(1))
try:
    if api.check(stream, no.view(0, api.DType.uint8, [1], [1]), "it is not so") is not None:
        raise SystemExit(77)
except api.DeviceError:
    pass
api.launch_host(stream, lambda: calls.append(1))
try:
    api.synchronize(stream)
except api.DeviceError as failed:
    assert "it is not so" in str(failed)
else:
    raise AssertionError("the stream has no failure")
assert calls == [1]
"""


def test_launch_host_throws_no_failure_of_the_stream(
    run_child: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """A caller whose call throws frees the argument, as the function has done."""
    needs("check")
    needs_property("reports_errors")
    done = run_child(AFTER_A_FAILURE, LAUNCH_BLOCKING="1")
    if done.returncode == 77:
        pytest.skip("the device has no kernel that checks")
    assert done.returncode == 0, done.stderr
