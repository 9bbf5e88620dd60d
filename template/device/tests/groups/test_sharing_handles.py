"""Handles that are rejected, and the messages."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from groups.other_process import Other, RemoteError, refused
from groups.shared_numbers import SIZE
from making import Make
from simulator_knobs import Knobs

GROUP = "sharing"


def test_only_the_first_address_of_an_allocation_is_exported(
    api: ModuleType, bare_device: None, numbers: int
) -> None:
    with refused(api, "is inside the allocation that begins at"):
        api.export_memory(0, numbers + 64)
    gone = api.allocate(0, SIZE)
    api.deallocate(0, gone)
    with refused(api, "is not in memory that device 0 has allocated"):
        api.export_memory(0, gone)


@pytest.mark.parametrize("layers", ["", "validate"])
def test_opened_memory_and_events_cannot_be_exported(
    api: ModuleType, start_other: Callable[..., Other], numbers: int, make: Make, layers: str
) -> None:
    other = start_other(**{f"{api.ENV_PREFIX}_DEVICE_LAYERS": layers})
    other.run("address = api.open_memory(0, handle)", handle=api.export_memory(0, numbers))
    with refused(api, "another process"):
        other.ask("api.export_memory(0, address)")
    other.run("event = api.open_event(0, handle)", handle=api.export_event(make.event()))
    with refused(api, "another process"):
        other.ask("api.export_event(event)")
    with refused(api, "the event"):
        other.run("api.record(event, api.default_stream(0))")


def test_a_process_does_not_open_its_own_handles(api: ModuleType, numbers: int, make: Make) -> None:
    with refused(api, "of this process itself"):
        api.open_memory(0, api.export_memory(0, numbers))
    with refused(api, "of this process itself"):
        api.open_event(0, api.export_event(make.event()))


def test_invalid_handles_are_refused_with_a_sentence(
    api: ModuleType, other: Other, numbers: int, make: Make
) -> None:
    rng = np.random.default_rng(5)
    memory, event = api.export_memory(0, numbers), api.export_event(make.event())
    for handle in ([0] * 64, [255] * 64, rng.integers(0, 256, 64).tolist()):
        for function in ("open_memory", "open_event"):
            with refused(api, "are not a handle of this device"):
                other.ask(f"api.{function}(0, handle)", handle=handle)
    with refused(api, "open it with open_event"):
        other.ask("api.open_memory(0, handle)", handle=event)
    with refused(api, "open it with open_memory"):
        other.ask("api.open_event(0, handle)", handle=memory)


@pytest.mark.parametrize("function", ["open_memory", "open_event"])
def test_a_damaged_handle_is_refused(
    api: ModuleType, simulator: Knobs, other: Other, numbers: int, make: Make, function: str
) -> None:
    kept = make.event()
    memory = function == "open_memory"
    handle = api.export_memory(0, numbers) if memory else api.export_event(kept)
    rng = np.random.default_rng(6)
    for place in range(32 if memory else 48):
        damaged = list(handle)
        damaged[place] ^= int(rng.integers(1, 256))
        with pytest.raises(RemoteError) as caught:
            other.ask(f"api.{function}(0, handle)", handle=damaged)
        assert caught.value.code == "INVALID_ARGUMENT"
    assert other.ask(f"api.{function}(0, handle) is not None", handle=handle)


def test_the_id_of_a_thread_is_not_accepted_as_a_process(
    api: ModuleType, simulator: Knobs, other: Other, numbers: int
) -> None:
    handle = bytes(api.export_memory(0, numbers))
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        process, number = (n.to_bytes(4, sys.byteorder) for n in (os.getpid(), thread.native_id))
        assert handle.count(process) == 1
        with pytest.raises(RemoteError) as caught:
            other.ask("api.open_memory(0, handle)", handle=list(handle.replace(process, number)))
    finally:
        end.set()
        thread.join()
    assert caught.value.code == "INVALID_ARGUMENT"


def test_handles_of_freed_objects_are_stale(api: ModuleType, other: Other, numbers: int) -> None:
    address, event = api.allocate(0, SIZE), api.create_event(0, False)
    memory, recorded = api.export_memory(0, address), api.export_event(event)
    api.deallocate(0, address)
    api.destroy_event(event)
    with refused(api, "the handle is stale"):
        other.ask("api.open_memory(0, handle)", handle=memory)
    with refused(api, "has destroyed the event"):
        other.ask("api.open_event(0, handle)", handle=recorded)


def test_a_forked_child_shares_nothing(run_child: Callable[..., Any], other: Other) -> None:
    handle = other.ask("api.export_memory(0, api.allocate(0, 64))")
    code = f"""
import os, sys, _device
address, event = _device.allocate(0, 64), _device.create_event(0, False)
_device.export_event(event)
child = os.fork()
if child == 0:
    calls = [
        lambda: _device.export_memory(0, address),
        lambda: _device.export_event(event),
        lambda: _device.open_memory(0, {handle}),
        lambda: _device.open_event(0, {handle}),
    ]
    for call in calls:
        try:
            call()
        except _device.DeviceError as error:
            assert "forked" in str(error), error
        else:
            os._exit(1)
    _device.close_memory(0, 64)
    _device.destroy_event(event)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    done = run_child(code, DEVICE_LAYERS="")
    assert done.returncode == 0, done.stderr
