"""Several host threads: every function may be called from any thread."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from host_memory import address_of, pattern
from making import Make
from runtime.work import THREADS, in_threads


def test_threads_may_share_a_stream(api: ModuleType, make: Make, stream: Any) -> None:
    buffer = make.buffer(THREADS * 1000)

    def work(thread: int) -> None:
        for i in range(1000):
            api.fill_bytes(stream, buffer.address + thread * 1000 + i, thread + 1, 1)

    in_threads(work)
    api.synchronize(stream)
    counts = np.bincount(np.frombuffer(buffer.read(), dtype=np.uint8), minlength=THREADS + 1)
    assert counts.tolist() == [0] + [1000] * THREADS


@pytest.mark.usefixtures("host_functions")
def test_work_of_each_thread_keeps_its_order_on_a_shared_stream(
    api: ModuleType, stream: Any
) -> None:
    ran: list[tuple[int, int]] = []

    def work(thread: int) -> None:
        for i in range(200):
            api.launch_host(stream, lambda i=i: ran.append((thread, i)))

    in_threads(work)
    api.synchronize(stream)
    for thread in range(THREADS):
        assert [i for who, i in ran if who == thread] == list(range(200))


def test_threads_may_copy_and_synchronise_on_a_shared_stream(
    api: ModuleType, make: Make, stream: Any
) -> None:
    def work(thread: int) -> None:
        buffer = make.buffer(4096)
        for i in range(200):
            sent = pattern(4096, seed=1000 * thread + i)
            received = np.zeros_like(sent)
            api.copy_bytes(stream, (buffer.address, 0), (address_of(sent), api.HOST), 4096)
            api.copy_bytes(stream, (address_of(received), api.HOST), (buffer.address, 0), 4096)
            assert (received == sent).all()
            api.synchronize(stream)

    in_threads(work)


def test_threads_may_allocate_and_free_at_once(api: ModuleType) -> None:
    before = api.memory_info(0).free

    def work(thread: int) -> None:
        for i in range(300):
            size = 1 + (thread * 7919 + i * 104729) % 100_000
            address = api.allocate(0, size)
            assert api.describe(0, address + size - 1).base == address
            api.deallocate(0, address)

    in_threads(work)
    assert api.memory_info(0).free == before


def test_free_while_other_streams_run(api: ModuleType, make: Make, gate: Any) -> None:
    held = make.stream()
    buffer = make.buffer(1 << 20)
    gate.hold(held)
    api.fill_bytes(held, buffer.address, 3, 1 << 20)
    for _ in range(50):
        api.deallocate(0, api.allocate(0, 4 << 20))
    gate.open()
    api.synchronize(held)
    assert set(buffer.read()) == {3}


@pytest.mark.usefixtures("host_functions")
def test_threads_may_make_streams_and_events(api: ModuleType) -> None:
    def work(thread: int) -> None:
        for i in range(30):
            stream, event = api.create_stream(0, 0), api.create_event(0, i % 2 == 0)
            ran: list[int] = []
            api.launch_host(stream, lambda ran=ran: ran.append(1))
            api.record(event, stream)
            api.synchronize(event)
            assert ran == [1]
            api.destroy_stream(stream)
            api.destroy_event(event)

    in_threads(work)


def test_threads_may_synchronise_while_others_enqueue(
    api: ModuleType, make: Make, stream: Any
) -> None:
    buffer = make.buffer(64)

    def work(thread: int) -> None:
        for i in range(500):
            if thread % 2 == 0:
                api.fill_bytes(stream, buffer.address, i % 256, 64)
            else:
                api.synchronize(0)

    in_threads(work)
    api.synchronize(stream)


@pytest.mark.usefixtures("host_functions")
def test_events_order_a_ring_of_streams(api: ModuleType, make: Make) -> None:
    streams = [make.stream(device % api.device_count()) for device in range(4)]
    events = [make.event(api.stream_device(stream)) for stream in streams]
    order: list[int] = []
    for step in range(200):
        here = step % 4
        api.wait(streams[here], events[here - 1])
        api.launch_host(streams[here], lambda step=step: order.append(step))
        api.record(events[here], streams[here])
    api.synchronize(events[199 % 4])
    assert order == list(range(200))
