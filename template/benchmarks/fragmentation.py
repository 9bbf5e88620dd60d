"""Measures the fragmentation of memory when a GPT is trained.

``python benchmarks/fragmentation.py`` records the allocations and frees of a training with
sequences of many lengths, replays them in an empty allocator, and prints the fragmentation,
1 - peak allocated / peak reserved, of this allocator and of CUDA's policy for the same requests.
``--json FILE`` writes the figures as well.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from cuda_policy import MIB, CudaPolicy
from names import DEVICE
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import gpt

backend = torch.get_device_module(DEVICE)

ALLOCATIONS = 100_000
LAYERS, WIDTH, HEADS = 12, 384, 6
BATCH, LENGTHS = 4, (32, 256)


@dataclass(frozen=True)
class Event:
    """An allocation of a block on a stream, or its free."""

    taken: bool
    address: int
    size: int
    stream: int


@dataclass(frozen=True)
class Peaks:
    """Peak allocated and peak reserved memory, in bytes."""

    allocated: int
    reserved: int

    @property
    def fragmentation(self) -> float:
        return 1 - self.allocated / self.reserved


def train() -> Iterator[None]:
    """Train a GPT, one step at a time. Batches are copied on a stream of their own."""
    torch.manual_seed(0)
    draws = random.Random(0)
    gpt.TIME = LENGTHS[1]
    model = gpt.GPT(WIDTH, HEADS, LAYERS).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    arrival = backend.Stream()
    while True:
        letters = torch.randint(len(gpt.LETTERS), (BATCH, draws.randint(*LENGTHS) + 1))
        with backend.stream(arrival):
            batch = letters.pin_memory().to(DEVICE, non_blocking=True)
        backend.current_stream().wait_stream(arrival)
        batch.record_stream(backend.current_stream())
        optimizer.zero_grad()
        scores = model(batch[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield


def recorded(allocations: int) -> list[Event]:
    """Return the allocations and frees of a training, including its model."""
    backend.init()
    backend.memory._record_memory_history(context=None, max_entries=10 * allocations)
    before = backend.memory_stats()["allocation.all.allocated"]
    for _ in train():
        if backend.memory_stats()["allocation.all.allocated"] - before >= allocations:
            break
    history = backend.memory._snapshot()["device_traces"][0]
    backend.memory._record_memory_history(None)
    return [
        Event(event["action"] == "alloc", event["addr"], event["size"], event["stream"])
        for event in history
        if event["action"] in ("alloc", "free_requested")
    ]


def replayed(events: list[Event]) -> Peaks:
    """Replay the events with this allocator."""
    gc.collect()
    backend.empty_cache()
    backend.reset_peak_memory_stats()
    assert backend.memory_reserved() == 0
    streams = {number: backend.Stream() for number in {event.stream for event in events}}
    tensors: dict[int, torch.Tensor] = {}
    for event in events:
        if event.taken:
            with backend.stream(streams[event.stream]):
                tensors[event.address] = torch.empty(event.size, dtype=torch.uint8, device=DEVICE)
        else:
            tensors.pop(event.address, None)
    return Peaks(backend.max_memory_allocated(), backend.max_memory_reserved())


def simulated(events: list[Event]) -> Peaks:
    """Replay the events with CUDA's policy."""
    policy, allocated, peak = CudaPolicy(), 0, 0
    blocks: dict[int, tuple[int, int]] = {}
    for event in events:
        if event.taken:
            blocks[event.address] = policy.take(event.size, event.stream)
            allocated += blocks[event.address][1]
            peak = max(peak, allocated)
        elif event.address in blocks:
            address, size = blocks.pop(event.address)
            policy.give_back(address)
            allocated -= size
    return Peaks(peak, policy.reserved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--allocations", type=int, default=ALLOCATIONS, help="how many to record")
    arguments = parser.parse_args()
    events = recorded(arguments.allocations)
    figures = {DEVICE: replayed(events), "CUDA's policy": simulated(events)}
    table = Table("allocator", title=f"{sum(event.taken for event in events):,} allocations")
    for column in ("peak allocated, MiB", "peak reserved, MiB", "fragmentation"):
        table.add_column(column, justify="right")
    for name, peaks in figures.items():
        allocated, reserved = (f"{size / MIB:,.0f}" for size in (peaks.allocated, peaks.reserved))
        table.add_row(name, allocated, reserved, f"{peaks.fragmentation:.1%}")
    Console().print(table)
    if arguments.json is not None:
        found = [
            {"allocator": name, **asdict(peaks), "fragmentation": peaks.fragmentation}
            for name, peaks in figures.items()
        ]
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
