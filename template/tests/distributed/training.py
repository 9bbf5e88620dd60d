"""Training one model in several processes, each with its share of every batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch
import torch.distributed as dist
from backend import DEVICE
from distributed.mesh import make_mesh
from torch import nn
from torch.distributed.tensor import Shard, distribute_tensor

STEPS, ROWS = 6, 12


def model(device: str = DEVICE) -> nn.Module:
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Linear(16, 4))
    return layers.to(device)


def batches(count: int, rows: int = ROWS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield inputs and targets, the same in every process."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(count):
        yield torch.randn(rows, 8, generator=generator), torch.randn(rows, 4, generator=generator)


def train(
    module: nn.Module,
    rank: int,
    size: int,
    optimizer: torch.optim.Optimizer | None = None,
    steps: range = range(STEPS),
) -> list[float]:
    """Train on this rank's part of each batch, and return the losses of whole batches."""
    device = next(module.parameters()).device
    optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for x, y in islice(batches(steps.stop), steps.start, None):
        mine = slice(rank * ROWS // size, (rank + 1) * ROWS // size)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(module(x[mine].to(device)), y[mine].to(device))
        loss.backward()
        optimizer.step()
        whole = loss.detach()
        if size > 1:
            dist.all_reduce(whole, dist.ReduceOp.AVG)
        losses.append(whole.item())
    return losses


def data_parallel(rank: int, size: int) -> list[float]:
    wrapped = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.001)
    return train(wrapped, rank, size)


def static_graph(rank: int, size: int) -> list[float]:
    wrapped = nn.parallel.DistributedDataParallel(model(), static_graph=True)
    return train(wrapped, rank, size)


def with_hook(rank: int, size: int) -> list[float]:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    wrapped = nn.parallel.DistributedDataParallel(model())
    wrapped.register_comm_hook(None, default_hooks.allreduce_hook)
    return train(wrapped, rank, size)


def fully_sharded(rank: int, size: int) -> list[float]:
    from torch.distributed.fsdp import fully_shard

    module = model()
    mesh = make_mesh(size)
    for layer in module.children():
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return train(module, rank, size)


def products(rank: int, size: int) -> bool:
    """Multiply a row-sharded matrix by a replicated one."""
    mesh = make_mesh(size)
    torch.manual_seed(3)
    left, right = torch.randn(8, 6, device=DEVICE), torch.randn(6, 4, device=DEVICE)
    product = distribute_tensor(left, mesh, [Shard(0)]) @ distribute_tensor(right, mesh)
    assert product.to_local().shape == (8 // size, 4)
    torch.testing.assert_close(product.full_tensor(), left @ right)
    return True
