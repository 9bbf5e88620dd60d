"""Events that are recorded in one process and waited for in another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from backend import DEVICE, backend
from ipc import remote
from ipc.partner import Partner


@pytest.fixture(autouse=True, scope="module")
def device_shares_events() -> None:
    if not backend._C.ipc_has_events():
        pytest.skip("the device library has no export_event and open_event")


def interprocess() -> torch.Event:
    return torch.Event(DEVICE, interprocess=True)


def test_the_receiver_of_an_event_waits_for_the_recorded_work(partner: Partner) -> None:
    tensor = torch.zeros(300_000, device=DEVICE)
    partner.call(remote.keep, tensor)
    for round in range(1, 4):
        for _ in range(200):
            tensor += 1
        event = interprocess()
        event.record()
        assert partner.call(last_of_kept_behind, event) == 200.0 * round
        assert event.query()


def last_of_kept_behind(event: torch.Event) -> float:
    return float(remote.wait_and_read(event, remote.kept[0][-1:])[0])


def test_a_received_event_represents_its_latest_record(partner: Partner) -> None:
    event = interprocess()
    event.record()
    tensor = torch.zeros(300_000, device=DEVICE)
    partner.call(remote.keep, tensor, event)
    for _ in range(200):
        tensor += 1
    event.record()
    partner.call(remote.wait_for_kept, 1)
    assert partner.call(first_of_kept) == 200.0


def first_of_kept() -> float:
    return float(remote.kept[0][0])


def test_a_received_event_is_a_torch_event(partner: Partner) -> None:
    event = partner.call(remote.record)
    assert type(event) is torch.Event
    assert event.device == torch.device(DEVICE, 0)
    event.synchronize()
    assert event.query()
    backend.current_stream().wait_event(event)
    backend.synchronize()


def test_an_event_loaded_by_its_own_process_is_the_same_object(partner: Partner) -> None:
    event = interprocess()
    event.record()
    # Only the process that made an event can send it.
    assert ForkingPickler.loads(ForkingPickler.dumps(event)) is event


def test_several_threads_send_events() -> None:
    def send(_: int) -> bool:
        event = interprocess()
        event.record()
        return ForkingPickler.loads(ForkingPickler.dumps(event)) is event

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(send, range(400)))
    finally:
        sys.setswitchinterval(interval)


def test_events_are_kept_while_another_process_uses_them(partner: Partner) -> None:
    backend.ipc_collect()
    before = len(backend.ipc._events)
    event = interprocess()
    event.record()
    partner.call(remote.keep, event)
    del event
    backend.ipc_collect()
    assert len(backend.ipc._events) == before + 1
    partner.call(remote.forget)
    backend.ipc_collect()
    assert len(backend.ipc._events) == before


def test_waiting_for_an_event_of_a_killed_process_ends(start: Callable[[], Partner]) -> None:
    partner = start()
    event = partner.call(remote.record)
    partner.kill()
    event.synchronize()
    assert event.query()


def test_sending_an_event_that_was_never_recorded_raises() -> None:
    with pytest.raises(RuntimeError, match="record it before"):
        ForkingPickler.dumps(interprocess())
