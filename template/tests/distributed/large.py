"""Collectives of large tensors, which are sent in many pieces, the last one of an odd length."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import torch
import torch.distributed as dist
from backend import DEVICE, backend
from distributed.behaviour import raised

COUNT = 3_000_017


def _all_reduce(rows: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    dist.all_reduce(rows)
    return rows


def _broadcast(rows: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    dist.broadcast(rows, 1)
    return rows


def _all_gather(rows: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    output = rows.new_zeros(size * COUNT)
    dist.all_gather_into_tensor(output, rows)
    return output


def _reduce_scatter(rows: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    output = torch.zeros_like(rows)
    dist.reduce_scatter_tensor(output, torch.cat([rows.roll(i, 0) for i in range(size)]))
    return output


def _all_to_all(rows: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    """Rank i sends much more to rank j the higher j is; all send nothing to rank 0."""
    sent = [other * COUNT // size for other in range(size)]
    received = [rank * COUNT // size] * size
    output = rows.new_zeros(sum(received))
    dist.all_to_all_single(output, torch.cat([rows] * size)[: sum(sent)], received, sent)
    return output


LARGE: dict[str, Callable[[torch.Tensor, int, int], torch.Tensor]] = {
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
}


def equals_gloos(rank: int, size: int, name: str) -> bool:
    """Move or add integers that are exact in float32."""
    rows = (torch.arange(COUNT * size) * (rank + 3) % 1000).float()[:COUNT]
    expected = LARGE[name](rows.clone(), rank, size)
    return torch.equal(LARGE[name](rows.to(DEVICE), rank, size).cpu(), expected)


def sum_of_fractions(rank: int, size: int) -> torch.Tensor:
    """Add numbers whose sum depends on the order."""
    generator = torch.Generator().manual_seed(rank)
    rows = torch.randn(100_003, generator=generator).to(DEVICE)
    dist.all_reduce(rows)
    return rows.cpu()


def kill_last_rank(rank: int, size: int) -> list[str | float]:
    """The last rank is killed while the others wait for it."""
    tensor = torch.ones(COUNT, device=DEVICE)
    dist.all_reduce(tensor)
    backend.synchronize()
    dist.barrier()
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tensor)
    error = raised(backend.synchronize)
    backend.acknowledge_failure()
    return [error, torch.ones(3, device=DEVICE).sum().item()]
