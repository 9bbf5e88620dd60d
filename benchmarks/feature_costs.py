"""Measures the cost of a feature in a backend's environment: ``python feature_costs.py NAME``.

Prints microseconds as JSON. It runs on two processors: one for the host, one for the simulator.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import timeit
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import multiprocessing
from torch.profiler import ProfilerActivity, profile

DEVICE = "foo"
BURST = 100
OPERATORS = 1000


def backend() -> Any:
    """Return the device module."""
    return torch.get_device_module(DEVICE)


def per_call(call: Callable[[], object], calls: int = BURST) -> float:
    """Time a burst of calls, which starts when the device is idle and fits into its queue."""
    call()
    backend().synchronize()
    return timeit.timeit(call, number=calls) / calls * 1e6


def launching() -> float:
    """Time `add` of one element."""
    x = torch.ones(1, device=DEVICE)
    return statistics.median(per_call(lambda: x + x) for _ in range(500))


def profiling() -> dict[str, float]:
    """Time `add` without a profile, and in profiles of the host, the device, and both, in turns."""
    x = torch.ones(1, device=DEVICE)
    host, device = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1
    kinds = {"off": [], "host": [host], "device": [device], "both": [host, device]}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(40):
        for kind, activities in kinds.items():
            session: AbstractContextManager[object] = nullcontext()
            if activities:
                session = profile(activities=activities, acc_events=True)
            with session:
                bursts = [per_call(lambda: x + x) for _ in range(5)]
            times[kind].append(statistics.median(bursts))
    return {kind: statistics.median(found) for kind, found in times.items()}


def replaying() -> float:
    """Time the replay of a graph on the host, per operator."""
    x = torch.ones(1, device=DEVICE)
    graph = backend().Graph()
    with backend().graph(graph):
        for _ in range(OPERATORS):
            x.add_(1)
    return statistics.median(per_call(graph.replay, 1) for _ in range(300)) / OPERATORS


def _read(sent: Any, answers: Any) -> None:
    """Copy every received tensor to the device, and answer when the copy has finished."""
    while (tensor := sent.get()) is not None:
        tensor = tensor.to(DEVICE)
        backend().synchronize()
        del tensor
        answers.put(True)


def sending() -> dict[str, float]:
    """Time 64 MiB sent to another process: the device tensor, and a copy in host memory."""
    context = multiprocessing.get_context("spawn")
    sent, answers = context.Queue(), context.Queue()
    other = context.Process(target=_read, args=(sent, answers), daemon=True)
    other.start()
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "itself": lambda tensor: tensor,
        "copied": lambda tensor: tensor.cpu(),
    }
    tensor = torch.ones(1 << 24, device=DEVICE)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(15):
        for way, prepare in ways.items():
            backend().synchronize()
            start = timeit.default_timer()
            sent.put(prepare(tensor))
            answers.get(timeout=60)
            times[way].append((timeit.default_timer() - start) * 1e6)
    sent.put(None)
    other.join(60)
    return {way: statistics.median(found[3:]) for way, found in times.items()}


COSTS: dict[str, Callable[[], object]] = {
    cost.__name__: cost for cost in (launching, profiling, replaying, sending)
}


if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    print(json.dumps(COSTS[sys.argv[1]]()))
