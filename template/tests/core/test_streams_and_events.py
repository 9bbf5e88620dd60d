"""Streams and events: the classes, which stream is current, ordering and timing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import keep_busy, needs, needs_two_devices

pytestmark = needs(torch.float32)

LAST = backend.device_count() - 1


def test_stream_is_a_torch_stream_of_this_device() -> None:
    stream = backend.Stream()
    assert isinstance(stream, torch.Stream)
    assert stream.device == torch.device(DEVICE, 0)


@pytest.mark.parametrize("device", [LAST, f"{DEVICE}:{LAST}", torch.device(DEVICE, LAST)])
def test_stream_accepts_a_device(device: Any) -> None:
    assert backend.Stream(device).device == torch.device(DEVICE, LAST)


def test_stream_without_an_index_is_on_the_current_device() -> None:
    backend.set_device(LAST)
    for stream in (backend.Stream(), backend.Stream(DEVICE), torch.Stream(), torch.Stream(DEVICE)):
        assert stream.device == torch.device(DEVICE, LAST)


def test_priorities_are_clamped_to_the_devices_range() -> None:
    lowest, highest = backend.Stream.priority_range()
    assert highest <= 0 <= lowest
    for priority in (-100, highest, 0, lowest, 100):
        stream = backend.Stream(priority=priority)
        assert stream.priority == min(max(priority, highest), lowest)
        with backend.stream(stream):
            assert torch.ones(2, device=DEVICE).sum().item() == 2


def test_normal_streams_have_the_priority_of_the_default_stream() -> None:
    stream = backend.Stream()
    assert backend.default_stream().priority == backend.current_stream().priority == 0
    assert stream.priority == 0
    again = backend.Stream(
        stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
    )
    assert again.priority == 0


def test_stream_of_another_device_type_is_refused() -> None:
    with pytest.raises(ValueError, match=f"expected a {DEVICE} device"):
        backend.Stream("cpu")


def test_an_unknown_keyword_of_a_stream_is_refused() -> None:
    with pytest.raises(TypeError, match="priorty"):
        backend.Stream(priorty=-1)


def test_a_stream_can_be_created_from_its_id() -> None:
    one, other = backend.Stream(), backend.Stream()
    assert one != other
    again = backend.Stream(
        stream_id=one.stream_id, device_index=one.device_index, device_type=one.device_type
    )
    assert again == one
    assert hash(again) == hash(one)


def invented(stream_id: int, index: int = 0) -> torch.Stream:
    """Return a stream with an id that may not exist."""
    kind = torch.Stream(DEVICE).device_type
    return torch.Stream(stream_id=stream_id, device_index=index, device_type=kind)


def enter(stream: torch.Stream) -> None:
    with stream:
        pass


USES_OF_A_STREAM = [
    lambda stream: stream.query(),
    lambda stream: stream.synchronize(),
    # PyTorch has native_handle from 2.11 on.
    lambda stream: getattr(stream, "native_handle", None) or stream.query(),
    lambda stream: stream.wait_stream(backend.current_stream()),
    lambda stream: backend.current_stream().wait_stream(stream),
    lambda stream: stream.record_event(),
    lambda stream: backend.Event().record(stream),
    lambda stream: stream.wait_event(backend.current_stream().record_event()),
    lambda stream: backend.set_stream(stream),
    lambda stream: torch.accelerator.set_stream(stream),
    enter,
    lambda stream: torch.ones(1, device=DEVICE).record_stream(stream),
]


@pytest.mark.parametrize("use", USES_OF_A_STREAM)
@pytest.mark.parametrize("stream_id", [1, 12345678, -1, 2**62])
def test_an_unknown_stream_id_is_refused(use: Any, stream_id: int) -> None:
    with pytest.raises(RuntimeError, match=f"{DEVICE}:0 has no stream of id {stream_id}"):
        use(invented(stream_id))
    assert backend.current_stream() == backend.default_stream()


@pytest.mark.parametrize("use", USES_OF_A_STREAM)
def test_a_stream_of_a_missing_device_is_refused(use: Any) -> None:
    with pytest.raises(RuntimeError, match=f"invalid device {DEVICE}:9"):
        use(invented(0, index=9))


@needs_two_devices
@pytest.mark.parametrize("use", USES_OF_A_STREAM)
def test_a_stream_id_is_valid_for_its_own_device_only(use: Any) -> None:
    stream = backend.Stream(1)
    with pytest.raises(RuntimeError, match=f"{DEVICE}:0 has no stream of id"):
        use(invented(stream.stream_id, index=0))


def test_record_stream_refuses_another_device_type() -> None:
    other = torch.Stream(stream_id=0, device_index=0, device_type=0)
    with pytest.raises(RuntimeError, match=f"expected a stream of {DEVICE}"):
        torch.ones(1, device=DEVICE).record_stream(other)


def test_stream_context_nests_and_can_be_entered_again() -> None:
    outer, inner = backend.Stream(), backend.Stream()
    context = backend.stream(outer)
    with context, backend.stream(inner), context:
        assert backend.current_stream() == outer
    assert backend.current_stream() == backend.default_stream()


@needs_two_devices
def test_stream_context_changes_the_device_and_restores_both() -> None:
    stream = backend.Stream(1)
    with backend.stream(stream):
        assert backend.current_device() == 1
        assert backend.current_stream() == stream
        assert backend.current_stream(0) == backend.default_stream(0)
    assert backend.current_device() == 0
    assert backend.current_stream(1) == backend.default_stream(1)


@needs_two_devices
def test_set_stream_makes_stream_and_device_current() -> None:
    stream = backend.Stream(1)
    backend.set_stream(stream)
    assert backend.current_stream(1) == stream
    assert backend.current_device() == 1


def test_event_that_was_never_recorded_is_complete() -> None:
    event = backend.Event()
    assert event.query()
    event.synchronize()
    event.wait()
    backend.Stream().wait_event(event)


def test_event_can_be_recorded_again() -> None:
    event, stream = backend.Event(), backend.Stream()
    event.record()
    with backend.stream(stream):
        keep_busy()
        result = torch.full((4,), 256.0, device=DEVICE)
        event.record()
    event.synchronize()
    assert stream.query()
    assert result.cpu().eq(256).all()


def test_record_event_accepts_an_event() -> None:
    event, stream = backend.Event(), backend.Stream()
    assert stream.record_event(event) is event
    event.synchronize()


def test_elapsed_time_without_timing_is_refused() -> None:
    start, end = backend.Event(), backend.Event()
    start.record()
    end.record()
    backend.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(end)


@needs_two_devices
def test_event_of_one_device_is_refused_by_a_stream_of_another() -> None:
    event = backend.Event(0)
    event.record(backend.Stream(0))
    with pytest.raises(RuntimeError, match="device"):
        event.record(backend.Stream(1))
