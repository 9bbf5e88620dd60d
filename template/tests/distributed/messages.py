"""Functions that ranks run in the tests of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from backend import DEVICE


def in_several_orders(rank: int, size: int) -> list[Any]:
    """Send by tags out of order, from any rank, and in a batch."""
    other = 1 - rank
    small, large = torch.zeros(2, device=DEVICE), torch.zeros(5, device=DEVICE)
    if rank == 0:
        first = dist.isend(torch.full((2,), 1.0, device=DEVICE), other, tag=1)
        second = dist.isend(torch.full((5,), 2.0, device=DEVICE), other, tag=2)
    else:
        second = dist.irecv(large, other, tag=2)
        first = dist.irecv(small, other, tag=1)
    for work in (second, first):
        assert work is not None
        work.wait()
    source = None
    anything = torch.zeros(3, device=DEVICE)
    if rank == 0:
        source = dist.recv(anything)
    else:
        dist.send(torch.full((3,), 7.0, device=DEVICE), 0)
    swapped = torch.zeros(4, device=DEVICE)
    mine = torch.full((4,), float(rank), device=DEVICE)
    batch = [dist.P2POp(dist.irecv, swapped, other), dist.P2POp(dist.isend, mine, other)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [item.tolist() for item in (small, large, anything, swapped)] + [source]


def many_tags(rank: int, size: int) -> tuple[list[float], int]:
    """Send messages of 60 tags in turn. Return the values and the number of new threads."""
    value, came = torch.zeros(1, device=DEVICE), []
    dist.all_reduce(value)
    dist.barrier()
    before = len(list(Path("/proc/self/task").iterdir()))
    for tag in range(60):
        if rank == 0:
            dist.send(value.fill_(tag), 1, tag=tag)
        else:
            dist.recv(value, 0, tag=tag)
        dist.barrier()  # a staged send has a thread until its message is received
        came.append(value.item())
    return came, len(list(Path("/proc/self/task").iterdir())) - before


def tags_both_ways(rank: int, size: int) -> list[float]:
    """Start six receives, and then six sends. The ranks use the tags in opposite orders."""
    other = 1 - rank
    received = [torch.zeros(1, device=DEVICE) for _ in range(6)]
    tags = range(6) if rank == 0 else range(5, -1, -1)
    works = [dist.irecv(received[tag], other, tag=tag) for tag in tags]
    for tag in tags:
        works.append(dist.isend(torch.full((1,), 10.0 * rank + tag, device=DEVICE), other, tag=tag))
    for work in works:
        assert work is not None
        work.wait()
    return [each.item() for each in received]


def to_itself(rank: int, size: int) -> list[Any]:
    """Send to the own rank: two messages, and one with another tag, received in another order."""
    values = [torch.full((2,), rank + number / 4, device=DEVICE) for number in range(3)]
    received = [torch.zeros(2, device=DEVICE) for _ in values]
    works = [dist.irecv(received[2], rank, tag=5)]
    works += [
        dist.isend(value, rank, tag=tag) for value, tag in zip(values, (0, 0, 5), strict=True)
    ]
    works += [dist.irecv(tensor, rank) for tensor in received[:2]]
    for work in works:
        assert work is not None
        work.wait()
    return [tensor.tolist() for tensor in received]
