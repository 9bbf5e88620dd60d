"""Streams: order within a stream, independence of streams, and their lifetime."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs
from host_memory import address_of, at
from making import Make


def test_a_stream_has_its_device(api: ModuleType, second_device: int, make: Make) -> None:
    assert api.stream_device(make.stream(0)) == 0
    assert api.stream_device(make.stream(second_device)) == second_device


def test_the_default_stream_is_one_per_device(api: ModuleType, second_device: int) -> None:
    assert api.default_stream(0) == api.default_stream(0)
    assert api.default_stream(0) != api.default_stream(second_device)
    assert api.stream_device(api.default_stream(second_device)) == second_device


def test_streams_are_distinct(make: Make) -> None:
    assert make.stream() != make.stream()


def test_a_stream_has_a_native_handle(api: ModuleType, stream: Any) -> None:
    needs("native_handle")
    assert isinstance(api.native_handle(stream), int)


def test_a_new_stream_is_idle(api: ModuleType, stream: Any) -> None:
    assert api.is_idle(stream)
    api.synchronize(stream)


def test_a_stream_is_idle_only_when_its_work_has_run(
    api: ModuleType, stream: Any, any_gate: Any
) -> None:
    any_gate.hold(stream)
    assert not api.is_idle(stream)
    any_gate.open()
    api.synchronize(stream)
    assert api.is_idle(stream)


def test_work_of_a_stream_runs_in_order(api: ModuleType, stream: Any, gate: Any) -> None:
    ran: list[int] = []
    gate.hold(stream)
    for i in range(100):
        api.launch_host(stream, lambda i=i: ran.append(i))
    assert ran == []
    gate.open()
    api.synchronize(stream)
    assert ran == list(range(100))


def test_a_stream_does_not_wait_for_another(api: ModuleType, make: Make, gate: Any) -> None:
    held, free = make.stream(), make.stream()
    ran: list[str] = []
    gate.hold(held)
    api.launch_host(held, lambda: ran.append("held"))
    api.launch_host(free, lambda: ran.append("free"))
    api.synchronize(free)
    assert ran == ["free"]
    gate.open()
    api.synchronize(held)
    assert ran == ["free", "held"]


def test_the_default_stream_waits_for_no_other(api: ModuleType, stream: Any, gate: Any) -> None:
    gate.hold(stream)
    api.synchronize(api.default_stream(0))
    assert not api.is_idle(stream)


def test_synchronising_a_device_waits_for_all_its_streams_and_no_others(
    api: ModuleType, second_device: int, make: Make, gate: Any
) -> None:
    gate.hold(make.stream(second_device))
    ran: list[int] = []
    streams = [make.stream(0) for _ in range(4)]
    for i, stream in enumerate(streams):
        api.launch_host(stream, lambda i=i: ran.append(i))
    api.synchronize(0)
    assert sorted(ran) == [0, 1, 2, 3]
    assert all(api.is_idle(stream) for stream in streams)


def test_destroying_a_stream_waits_for_its_work(api: ModuleType, make: Make) -> None:
    size = 1 << 20
    stream, buffer, target = api.create_stream(0, 0), make.buffer(size), at(make.pinned(size), size)
    target[:] = 0
    for value in range(1, 50):
        api.fill_bytes(stream, buffer.address, value, size)
    api.copy_bytes(stream, (address_of(target), api.HOST), (buffer.address, 0), size)
    api.destroy_stream(stream)
    assert (target == 49).all()


def test_many_streams_can_be_created_and_destroyed(api: ModuleType, make: Make) -> None:
    buffer = make.buffer(5 * 16)
    for turn in range(5):
        streams = [api.create_stream(0, 0) for _ in range(16)]
        for i, stream in enumerate(streams):
            api.fill_bytes(stream, buffer.address + 16 * turn + i, 1 + i, 1)
        for stream in streams:
            api.destroy_stream(stream)
    assert buffer.read() == bytes(range(1, 17)) * 5


def test_streams_of_every_priority_run_their_work(api: ModuleType, make: Make) -> None:
    properties = api.properties(0)
    priorities = [properties.highest_priority, 0, properties.lowest_priority]
    buffer = make.buffer(len(priorities))
    streams = [make.stream(0, priority) for priority in priorities]
    for offset, stream in enumerate(streams):
        api.fill_bytes(stream, buffer.address + offset, offset + 1, 1)
    for stream in streams:
        api.synchronize(stream)
    assert list(buffer.read()) == [1, 2, 3]


@pytest.mark.parametrize("beyond", [-1000, 1000])
def test_a_priority_out_of_range_is_clamped(api: ModuleType, make: Make, beyond: int) -> None:
    api.synchronize(make.stream(0, beyond))


def test_more_work_than_a_queue_holds_runs_in_order(
    api: ModuleType, make: Make, stream: Any
) -> None:
    buffer = make.buffer(4)
    for i in range(30_000):
        api.fill_bytes(stream, buffer.address, i % 251, 4)
    api.synchronize(stream)
    assert set(buffer.read()) == {29_999 % 251}


def test_counting_devices_is_safe_before_fork(run_child: Callable[..., Any]) -> None:
    code = """
import os, _device
before = _device.device_count()
child = os.fork()
if child == 0:
    stream = _device.default_stream(0)
    _device.synchronize(stream)
    os._exit(0 if _device.device_count() == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = run_child(code)
    assert done.returncode == 0, done.stderr


def test_the_process_ends_cleanly_with_work_pending(run_child: Callable[..., Any]) -> None:
    code = """
import _device
for _ in range(4):
    stream = _device.create_stream(0, 0)
    address = _device.allocate(0, 64 << 20)
    for value in range(20):
        _device.fill_bytes(stream, address, value, 64 << 20)
"""
    done = run_child(code)
    assert done.returncode == 0, done.stderr
