"""Snapshots, the recorded history, and the profiler's record of memory."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import MIB, needs, needs_two_devices, run_python, take
from torch.cuda import _memory_viz
from torch.profiler import ProfilerActivity, profile

pytestmark = pytest.mark.usefixtures("without_history")


def record(**options: Any) -> None:
    backend.memory._record_memory_history(**{"stacks": "python", **options})


def snapshot() -> dict[str, Any]:
    result: dict[str, Any] = backend.memory._snapshot()
    return result


def events(*actions: str, device: int = 0) -> list[dict[str, Any]]:
    """Return the recorded events of a device, of all actions or of ``actions``."""
    trace = snapshot()["device_traces"][device]
    return [event for event in trace if not actions or event["action"] in actions]


def block_of(tensor: torch.Tensor) -> dict[str, Any]:
    (found,) = [
        block
        for segment in backend.memory_snapshot()
        for block in segment["blocks"]
        if segment["device"] == tensor.device.index and block["address"] == tensor.data_ptr()
    ]
    return dict(found)


# --- Snapshots ---


def test_snapshot_shows_a_tensor_and_its_release() -> None:
    tensor = take(12 * MIB)
    address = tensor.data_ptr()
    (segment,) = [item for item in backend.memory_snapshot() if item["address"] == address]
    (block,) = segment["blocks"]
    assert block["state"] == "active_allocated"
    assert segment["requested_size"] == block["requested_size"] == tensor.nbytes
    assert segment["allocated_size"] == segment["active_size"] == segment["total_size"]
    assert (segment["segment_type"], segment["stream"]) == ("large", 0)
    assert segment["segment_pool_id"] == (0, 0)
    assert segment["is_expandable"] is False
    del tensor
    (freed,) = [item for item in backend.memory_snapshot() if item["address"] == address]
    assert freed["blocks"][0]["state"] == "inactive"
    assert freed["allocated_size"] == freed["active_size"] == freed["requested_size"] == 0
    backend.empty_cache()
    assert address not in [item["address"] for item in backend.memory_snapshot()]


def test_snapshot_adds_up_to_the_statistics() -> None:
    kept = [take(size) for size in (100 * 8, MIB, 5 * MIB)]
    take(2 * MIB)
    for device in range(backend.device_count()):
        segments = [item for item in backend.memory_snapshot() if item["device"] == device]
        figures = backend.memory_stats(device)
        for key, name in {
            "allocated_size": "allocated_bytes",
            "total_size": "reserved_bytes",
            "active_size": "active_bytes",
            "requested_size": "requested_bytes",
        }.items():
            assert sum(item[key] for item in segments) == figures[f"{name}.all.current"], key
    assert len(kept) == 3


def test_snapshot_names_the_stream() -> None:
    stream = backend.Stream()
    with backend.stream(stream):
        tensor = take(12 * MIB)
    (segment,) = [
        item for item in backend.memory_snapshot() if item["address"] == tensor.data_ptr()
    ]
    assert segment["stream"] == stream.stream_id
    assert backend.memory_snapshot((0, 0)) == backend.memory_snapshot()
    no_pool = (2**32, 0)  # small numbers may be those of graphs of other tests
    assert backend.memory_snapshot(no_pool) == []


def test_snapshot_has_the_settings() -> None:
    settings = snapshot()["allocator_settings"]
    assert settings["max_split_size"] == backend.memory_stats()["max_split_size"]
    assert settings["expandable_segments"] is False


# --- History ---


def test_events_are_in_order() -> None:
    record()
    first = take(12 * MIB)
    address = first.data_ptr()
    del first
    second = take(12 * MIB)
    del second
    backend.empty_cache()
    seen = [(event["action"], event["addr"]) for event in events() if event["addr"] == address]
    once = ["alloc", "free_requested", "free_completed"]
    assert [action for action, _ in seen] == ["segment_alloc", *once, *once, "segment_free"]
    sizes = {event["size"] for event in events() if event["addr"] == address}
    assert sizes == {12 * MIB}
    times = [event["time_us"] for event in events()]
    assert times == sorted(times)


def test_frames_are_those_of_the_caller() -> None:
    record()
    line = traceback.extract_stack()[-1].lineno
    assert line is not None
    tensor = take(MIB)
    frames = block_of(tensor)["frames"]
    assert frames[0]["name"] == "take"
    caller = frames[1]
    assert caller["filename"] == __file__
    assert caller["name"] == "test_frames_are_those_of_the_caller"
    assert caller["line"] == line + 2
    (allocated,) = [item for item in events("alloc") if item["addr"] == tensor.data_ptr()]
    assert allocated["frames"] == frames


def test_frames_of_cxx_are_recorded_on_request() -> None:
    run_python(
        f"""
        import torch
        backend = torch.{DEVICE}
        backend.memory._record_memory_history(stacks="all")
        tensor = torch.empty(3, device="{DEVICE}")
        backend.memory._record_memory_history("state", context=None)
        (frames,) = [
            block["frames"]
            for segment in backend.memory_snapshot()
            for block in segment["blocks"]
            if block["state"] == "active_allocated"
        ]
        names = [frame["name"] for frame in frames]
        assert any("empty" in name and "::" in name for name in names), names
        """
    )


@pytest.mark.parametrize("context", [None, "state", "alloc", "all"])
def test_context_selects_the_recorded_frames(context: str | None) -> None:
    record(context=context)
    kept = take(MIB)
    freed = take(12 * MIB)
    address = freed.data_ptr()
    del freed
    assert bool(block_of(kept)["frames"]) == (context is not None)
    (alloc,) = [item for item in events("alloc") if item["addr"] == address]
    assert bool(alloc["frames"]) == (context in ("alloc", "all"))
    (free,) = [item for item in events("free_requested") if item["addr"] == address]
    lines = {frame["line"] for frame in free["frames"]}
    assert bool(lines) == (context in ("alloc", "all"))
    # The line of `del`, or otherwise the line of the allocation.
    assert (free["frames"] != alloc["frames"]) == (context == "all")


def test_state_records_no_history() -> None:
    record(enabled="state")
    for _ in range(5):
        tensor = take(MIB)
    assert len(events()) == 1
    assert block_of(tensor)["frames"]


def test_the_last_events_are_kept() -> None:
    record(max_entries=4)
    for _ in range(10):
        take(MIB)
    last = take(12 * MIB)
    assert len(events()) == 4
    assert last.data_ptr() in [event["addr"] for event in events()]


def test_actions_can_be_skipped() -> None:
    record(skip_actions=["free_requested", "segment_alloc", "snapshot"])
    take(12 * MIB)
    assert {event["action"] for event in events()} == {"alloc", "free_completed"}


def test_recording_can_be_restarted() -> None:
    record()
    take(MIB)
    record(enabled=None)
    take(MIB)
    assert events() == []
    record()
    take(MIB)
    record(clear_history=True)
    assert events("alloc") == []


def test_running_out_of_memory_is_recorded() -> None:
    record()
    total = backend.mem_get_info()[1]
    with pytest.raises(torch.OutOfMemoryError):
        take(2 * total)
    (event,) = events("oom")
    assert event["size"] == 2 * total
    assert 0 < event["device_free"] <= total
    assert event["frames"]


@needs_two_devices
def test_each_device_has_its_own_history() -> None:
    record()
    tensor = take(MIB, f"{DEVICE}:1")
    assert tensor.data_ptr() in [event["addr"] for event in events("alloc", device=1)]
    assert events("alloc", device=0) == []


@pytest.mark.parametrize(
    "options",
    [
        {"enabled": "some"},
        {"enabled": True},
        {"context": "none"},
        {"stacks": "cpp"},
        {"skip_actions": ["allocate"]},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    (word,) = options
    with pytest.raises(ValueError, match=word):
        record(**options)


def test_traces_of_fx_are_refused() -> None:
    for write in (backend.memory._snapshot, backend.memory._dump_snapshot):
        with pytest.raises(NotImplementedError, match="augment_with_fx_traces"):
            write(augment_with_fx_traces=True)


# --- The profiler ---


@needs(torch.float32)
def test_profiler_sees_each_allocation_and_release(tmp_path: Path) -> None:
    take(8)
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True, record_shapes=True
    ) as run:
        held = backend.memory_allocated()
        tensor = torch.empty(MIB, device=DEVICE)
        address = tensor.data_ptr()
        del tensor
    (made,) = [event for event in run.events() if event.name == "aten::empty"]
    assert made.device_memory_usage == made.self_device_memory_usage == 4 * MIB
    run.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    taken, given = [event["args"] for event in trace if event.get("name") == "[memory]"]
    assert (taken["Bytes"], given["Bytes"]) == (4 * MIB, -4 * MIB)
    assert (taken["Total Allocated"], given["Total Allocated"]) == (held + 4 * MIB, held)
    assert taken["Addr"] == given["Addr"] == address
    assert taken["Total Reserved"] == backend.memory_reserved()
    assert "MemoryViz.js" in _memory_viz.profile_plot(run)
