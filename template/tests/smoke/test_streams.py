"""Streams and events, and the memory that several streams use."""

from __future__ import annotations

import threading

import pytest
import torch
from backend import DEVICE, backend
from support import needs_two_devices, sample


def long_work() -> torch.Tensor:
    """Enqueue work on the current stream that takes a while, and return ones."""
    values = torch.zeros(1 << 20, device=DEVICE)
    for _ in range(10):
        values = values * values
    return values + 1


def test_a_stream_is_current_within_its_context() -> None:
    default = backend.current_stream()
    assert default == backend.default_stream()
    stream = backend.Stream()
    assert isinstance(stream, torch.Stream) and stream.device.type == DEVICE
    with backend.stream(stream):
        assert backend.current_stream() == stream == torch.accelerator.current_stream()
        with backend.stream(None):
            assert backend.current_stream() == stream
    assert backend.current_stream() == default
    with torch.Stream(device=DEVICE) as other:
        assert backend.current_stream() == other


def test_the_current_stream_is_per_thread() -> None:
    seen = []
    with backend.stream(backend.Stream()):
        thread = threading.Thread(target=lambda: seen.append(backend.current_stream()))
        thread.start()
        thread.join()
    assert seen == [backend.default_stream()]


@pytest.mark.parametrize("how", ["stream", "event", "synchronize"])
def test_streams_wait_for_each_other(how: str) -> None:
    first, second = backend.Stream(), backend.Stream()
    with backend.stream(first):
        values = long_work()
        event = first.record_event()
    if how == "stream":
        second.wait_stream(first)
    elif how == "event":
        second.wait_event(event)
    else:
        event.synchronize()
        assert event.query()
    with backend.stream(second):
        values.record_stream(second)
        doubled = values + values
    second.synchronize()
    assert second.query()
    assert (doubled.cpu() == 2).all()


def test_synchronize_waits_for_every_stream() -> None:
    streams = [backend.Stream() for _ in range(4)]
    for stream in streams:
        with backend.stream(stream):
            long_work()
    backend.synchronize()
    assert all(stream.query() for stream in streams)


def test_events() -> None:
    event = backend.Event()
    assert isinstance(event, torch.Event) and event.query()
    event.synchronize()
    long_work()
    event.record()
    event.synchronize()
    assert event.query()


@pytest.mark.skipif(
    not backend.get_device_properties(0).event_timing, reason="events of the device have no times"
)
def test_events_measure_time() -> None:
    start, end = backend.Event(enable_timing=True), backend.Event(enable_timing=True)
    start.record()
    long_work()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def test_memory_that_a_stream_still_uses_is_not_reused() -> None:
    side = backend.Stream()
    results = []
    for value in range(8):
        tensor = torch.full((1 << 16,), float(value), device=DEVICE)
        side.wait_stream(backend.current_stream())
        with backend.stream(side):
            long_work()
            tensor.record_stream(side)
            results.append(tensor + 1)
        del tensor
        torch.full((1 << 16,), -1.0, device=DEVICE)
    side.synchronize()
    for value, result in enumerate(results):
        assert (result.cpu() == value + 1).all()


@needs_two_devices
def test_an_event_orders_streams_of_two_devices() -> None:
    values = long_work()
    event = backend.current_stream(0).record_event()
    with backend.device(1):
        backend.current_stream(1).wait_event(event)
        assert (values.to(f"{DEVICE}:1").cpu() == 1).all()


def test_threads_use_the_device_concurrently() -> None:
    results: dict[int, bool] = {}

    def work(index: int) -> None:
        with backend.stream(backend.Stream()):
            values = sample(100, 100, seed=index).to(DEVICE)
            for _ in range(10):
                values = values + values
            results[index] = torch.equal(values.cpu(), sample(100, 100, seed=index) * 1024)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(6), True)


def test_a_backward_pass_uses_the_stream_of_the_forward_pass() -> None:
    stream = backend.Stream()
    leaf = torch.ones(1 << 16, device=DEVICE, requires_grad=True)
    stream.wait_stream(backend.current_stream())
    seen = []
    with backend.stream(stream):
        result = leaf * 3
        result.register_hook(lambda gradient: seen.append(backend.current_stream()))
    result.sum().backward()
    assert seen == [stream]
    assert leaf.grad is not None
    backend.synchronize()
    assert (leaf.grad.cpu() == 3).all()
