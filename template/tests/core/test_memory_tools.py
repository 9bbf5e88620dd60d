"""PyTorch's tools that read snapshots: `torch.cuda._memory_viz`, and the pages that it writes."""

from __future__ import annotations

import pickle
import pickletools
import random
import re
from bisect import bisect
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import backend
from support import MIB, needs, take
from torch.cuda import _memory_viz

pytestmark = pytest.mark.usefixtures("without_history")


def work() -> tuple[torch.Tensor, torch.Tensor]:
    """Record events of every kind."""
    backend.memory._record_memory_history(stacks="python")
    kept = take(30 * MIB)
    small = take(4000)
    take(5 * MIB)
    return kept, small


def text(lines: str) -> str:
    """Replace flamegraph.pl, which the tools download."""
    return lines


def test_the_tools_print_a_summary() -> None:
    kept, _ = work()
    data = backend.memory._snapshot()
    summary = _memory_viz.segsum(data)
    assert f"segments: {len(data['segments'])}" in summary
    reserved = sum(segment["total_size"] for segment in data["segments"])
    assert f"total_reserved: {_memory_viz.Bytes(reserved)}" in summary
    assert re.search(r"\[a+\] 30.0MiB allocated, 0.0B free", summary)

    trace = _memory_viz.trace(data)
    assert "cudaMalloc" in trace
    assert re.search(r"[a-z] = [a-z]\[0:30\.0MiB\]", trace)
    assert re.search(r"del [a-z]+ # 5\.0MiB", trace)

    lines = _memory_viz.memory(data, format_flamegraph=text).splitlines()
    tensor = [line for line in lines if ":work;" in line and line.endswith(f" {kept.nbytes}")]
    assert len(tensor) == 1
    sizes = [int(line.rsplit(" ", 1)[1]) for line in lines]
    assert sum(sizes) == reserved
    places = _memory_viz.segments(data, format_flamegraph=text)
    assert all(f"seg_{segment['address']}" in places for segment in data["segments"])


def test_tools_compare_two_snapshots(capsys: pytest.CaptureFixture[str]) -> None:
    before = backend.memory_snapshot()
    kept = take(30 * MIB)
    after = backend.memory_snapshot()
    lines = _memory_viz.compare(before, after, format_flamegraph=text)
    assert f"only_after;stream_0;seg_{kept.data_ptr()};active_allocated" in lines
    assert "only_before;" not in lines
    assert f"only_after = [{kept.data_ptr()}]" in capsys.readouterr().out


@pytest.mark.parametrize("plot", [_memory_viz.trace_plot, _memory_viz.segment_plot])
def test_the_tools_plot_a_loaded_snapshot(plot: Any, tmp_path: Path) -> None:
    kept, small = work()
    backend.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    data = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    page = plot(data)
    assert "MemoryViz.js" in page and "snapshot.pickle" in page
    actions = [event["action"] for event in data["device_traces"][0]]
    assert actions.count("alloc") == 3 and actions.count("free_completed") == 1
    assert kept.nbytes + small.nbytes == 30 * MIB + 4000
    unfreed = _memory_viz.filter_alloc_free_pairs(data)["device_traces"][0]
    live = {event["addr"] for event in unfreed if event["action"] == "alloc"}
    assert live == {kept.data_ptr(), small.data_ptr()}


# MemoryViz.js, which the pages load, is not in PyTorch's wheels: these tests check its input.


ADDRESSES = ("address", "addr")


def assert_plain(value: Any, key: str = "") -> None:
    """Check that the page's own pickle reader can read a value, and numbers without rounding.

    Addresses have up to 64 bits. The page rounds them from 2**53 on when it shows them.
    """
    if isinstance(value, (list, tuple)):
        for item in value:
            assert_plain(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            assert_plain(name)
            assert_plain(item, name)
    else:
        assert value is None or type(value) in (bool, int, float, str), type(value)
        bound = 2**64 if key in ADDRESSES else 2**53
        assert type(value) is not int or abs(value) < bound, value


def test_the_pages_can_read_the_pickle(tmp_path: Path) -> None:
    kept = work()
    with pytest.raises(torch.OutOfMemoryError):
        take(2 * backend.mem_get_info()[1])
    backend.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    written = (tmp_path / "snapshot.pickle").read_bytes()
    assert_plain(pickle.loads(written))
    protocol = next(pickletools.genops(written))[1]
    assert protocol in (2, 3, 4), "the page refuses others"
    assert len(kept) == 2


def contents(data: dict[str, Any]) -> tuple[dict[int, int], dict[int, int]]:
    """Return sizes by address: of the segments of device 0, and of the blocks in use."""
    segments = [segment for segment in data["segments"] if segment["device"] == 0]
    blocks = [block for segment in segments for block in segment["blocks"]]
    return (
        {segment["address"]: segment["total_size"] for segment in segments},
        {item["address"]: item["requested_size"] for item in blocks if item["state"] != "inactive"},
    )


@needs(torch.float32)
def test_undoing_the_history_gives_the_first_snapshot() -> None:
    """The page of `segment_plot` does this for each event."""
    before = contents(backend.memory._snapshot())
    backend.memory._record_memory_history(stacks="python")
    draws = random.Random(0)
    stream = backend.Stream()
    kept: list[torch.Tensor] = []
    for step in range(300):
        kept.append(take(draws.choice((8, 5000, MIB, 3 * MIB, 12 * MIB, 14 * MIB, 30 * MIB))))
        if step % 5 == 0:
            with backend.stream(stream):
                kept[-1].fill_(1)
            kept[-1].record_stream(stream)
        while len(kept) > 8:
            kept.pop(draws.randrange(len(kept)))
        if step % 100 == 99:
            backend.empty_cache()
    data = backend.memory._snapshot()
    segments, blocks = contents(data)
    for event in reversed(data["device_traces"][0]):
        address, size = event["addr"], event["size"]
        match event["action"]:
            case "alloc":
                assert blocks.pop(address) == size
            case "free_requested":
                assert blocks[address] == size
            case "free_completed":
                assert address not in blocks
                blocks[address] = size
            case "segment_alloc":
                assert segments.pop(address) == size
            case "segment_free":
                assert address not in segments
                segments[address] = size
        starts = sorted(segments)
        for place in blocks:
            start = starts[bisect(starts, place) - 1]
            assert start <= place and place + blocks[place] <= start + segments[start]
    assert (segments, blocks) == before
