"""Times two processes on tensors of ``foo`` and, in turns, of the CPU: ``python ranks.py FILE``.

Writes the medians on ``foo`` as multiples of those on the CPU: of ``all_reduce``, and of a training
step with DistributedDataParallel.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import FileStore
from torch.multiprocessing.spawn import start_processes

SIZE = 2
DEVICES = ("cpu", "foo")


def all_reduce(device: str) -> Callable[[], object]:
    """Return a function that reduces 64 MiB."""
    tensor = torch.ones(2**24, device=device)
    return lambda: dist.all_reduce(tensor)


def training(device: str) -> Callable[[], object]:
    """Return a training step of the MLP of the rendered project's benchmarks."""
    torch.manual_seed(0)
    layers = [layer for _ in range(3) for layer in (nn.Linear(256, 256), nn.ReLU())]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 256).to(device), torch.randn(64, 256).to(device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def ratio(make: Callable[[str], Callable[[], object]], calls: int, rounds: int) -> float:
    """Time bursts of ``calls``, after a warm-up of a third of the ``rounds``."""
    functions = {device: make(device) for device in DEVICES}
    seconds: dict[str, list[float]] = {device: [] for device in DEVICES}
    for _ in range(rounds + rounds // 3):
        for device, function in functions.items():
            dist.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                function()
            torch.get_device_module("foo").synchronize()
            seconds[device].append(time.perf_counter() - start)
    cpu, foo = (median(seconds[device][rounds // 3 :]) for device in DEVICES)
    return foo / cpu


def measure(rank: int, store: str, file: str) -> None:
    """Measure as one of the ranks; rank 0 writes the file."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "cpu:gloo,foo:fooccl", store=FileStore(store, SIZE), rank=rank, world_size=SIZE
    )
    found = {"all_reduce": ratio(all_reduce, 1, 21), "training": ratio(training, 20, 21)}
    if rank == 0:
        Path(file).write_text(json.dumps(found), "utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        arguments = (f"{folder}/store", sys.argv[1])
        start_processes(measure, arguments, SIZE)  # type: ignore[no-untyped-call]
