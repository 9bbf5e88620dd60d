"""One small network, divided among processes by each of PyTorch's methods."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from backend import DEVICE
from distributed.mesh import make_mesh
from distributed.training import ROWS, STEPS, batches, train
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

PLACES, WIDTH = 12, 12  # divisible by 2, 3 and 4


class Layer(nn.Module):
    """Maps (rows, places, width) to the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.wider = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrower = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.narrower(torch.tanh(self.wider(self.norm(x))))


def network(device: str = DEVICE, layers: int = 2) -> nn.Sequential:
    """Return three parts. The middle one has the layers."""
    torch.manual_seed(1)
    enter = nn.Sequential(nn.Linear(8, PLACES * WIDTH), nn.Unflatten(-1, (PLACES, WIDTH)))
    middle = nn.Sequential(*(Layer() for _ in range(layers)))
    leave = nn.Sequential(nn.Flatten(), nn.Linear(PLACES * WIDTH, 4))
    return nn.Sequential(enter, middle, leave).to(device)


def single_process_losses(layers: int = 2) -> list[float]:
    """Return the losses of one process on the CPU."""
    return train(network("cpu", layers), 0, 1)


def adam(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(module.parameters(), lr=0.01)


def divide_layers(module: nn.Sequential, mesh: DeviceMesh) -> None:
    """Shard the weights by columns or rows, and the activations between layers by places."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor import parallel as tp

    layer = {
        "norm": tp.SequenceParallel(),
        "wider": tp.ColwiseParallel(input_layouts=Shard(1)),
        "narrower": tp.RowwiseParallel(output_layouts=Shard(1)),
    }
    divide = tp.PrepareModuleInput(
        input_layouts=Replicate(), desired_input_layouts=Shard(1), use_local_output=True
    )
    join = tp.PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
    for part in module[1].children():
        tp.parallelize_module(part, mesh, layer)
    for plan in (divide, join):
        tp.parallelize_module(module[1], mesh, plan)
    ends = {
        "0.0": tp.ColwiseParallel(output_layouts=Replicate()),
        "2.1": tp.RowwiseParallel(input_layouts=Replicate()),
    }
    tp.parallelize_module(module, mesh, ends)


def tensor_parallel(rank: int, size: int) -> list[float]:
    module = network()
    divide_layers(module, make_mesh(size))
    return train(module, 0, 1)


def sharded_and_tensor_parallel(rank: int, size: int) -> list[float]:
    """Pairs of processes divide the layers, and the pairs shard the results."""
    from torch.distributed.fsdp import fully_shard

    mesh = make_mesh(size // 2, 2, names=("shards", "tensors"))
    module = network()
    divide_layers(module, mesh["tensors"])
    for part in (*module[1].children(), module):
        fully_shard(part, mesh=mesh["shards"])
    return train(module, mesh["shards"].get_local_rank(), size // 2)


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def sequences() -> list[torch.Tensor]:
    """Return query, key, value and a gradient: (batch, heads, places, width)."""
    torch.manual_seed(3)
    return [torch.randn(2, 3, 24, 8) for _ in range(4)]


def single_process_attention() -> list[list[float]]:
    """Return the result and the gradients of one process on the CPU, flat."""
    *inputs, gradient = sequences()
    inputs = [tensor.requires_grad_() for tensor in inputs]
    out = attend(*inputs)
    grads = torch.autograd.grad(out, inputs, gradient)
    return [tensor.flatten().tolist() for tensor in (out, *grads)]


def context_parallel(rank: int, size: int) -> list[list[float]]:
    """Shard the places among the processes; return the unsharded results."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import context_parallel_unshard

    buffers = [tensor.to(DEVICE) for tensor in sequences()]
    mesh = make_mesh(size)
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * len(buffers)):
        # Copies, because the buffers are resized at the end.
        *inputs, gradient = (tensor.clone() for tensor in buffers)
        inputs = [tensor.requires_grad_() for tensor in inputs]
        out = attend(*inputs)
        grads = torch.autograd.grad(out, inputs, gradient)
        whole = context_parallel_unshard(mesh, [out.detach(), *grads], [2] * 4)
    return [tensor.flatten().tolist() for tensor in whole]


def pipelined(rank: int, size: int, name: str) -> list[float]:
    """Train by the schedule ``name``, with one layer and its neighbours in each stage."""
    from torch.distributed import pipelining

    each = 2 if name == "ScheduleInterleaved1F1B" else 1
    enter, middle, leave = network(layers=each * size)
    stages = []
    for index in range(rank, each * size, size):
        parts = [middle[index]]
        if index == 0:
            parts.insert(0, enter)
        if index == each * size - 1:
            parts.append(leave)
        module = nn.Sequential(*parts)
        stages.append(pipelining.PipelineStage(module, index, each * size, torch.device(DEVICE, 0)))
    schedule = getattr(pipelining, name)(
        stages if each > 1 else stages[0], n_microbatches=ROWS, loss_fn=nn.functional.mse_loss
    )
    optimizer = torch.optim.SGD(
        [weight for stage in stages for weight in stage.submod.parameters()], lr=0.1
    )
    means = []
    for x, y in batches(STEPS):
        losses: list[torch.Tensor] = []
        optimizer.zero_grad()
        given = (x.to(DEVICE),) if rank == 0 else ()
        if rank == size - 1:
            schedule.step(*given, target=y.to(DEVICE), losses=losses)
        else:
            schedule.step(*given)
        optimizer.step()
        mean = torch.stack(losses).mean() if losses else torch.zeros((), device=DEVICE)
        dist.broadcast(mean, size - 1)
        means.append(mean.item())
    return means


def zero_redundancy(rank: int, size: int) -> list[float]:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    wrapped = nn.parallel.DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(wrapped.parameters(), torch.optim.Adam, lr=0.01)
    losses = train(wrapped, rank, size, optimizer)
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        assert len(optimizer.state_dict()["state"]) == len(list(wrapped.parameters()))
    return losses


def sampled(size: int, mine: range) -> list[DataLoader[Any]]:
    """Return the loaders of the ranks in ``mine``, for rows that ``size`` ranks share."""
    rows = TensorDataset(*next(batches(1, 26)))  # not divisible by the sizes
    samplers = (DistributedSampler(rows, size, rank, seed=5) for rank in mine)
    return [DataLoader(rows, batch_size=3, sampler=sampler) for sampler in samplers]


def read(module: nn.Module, loaders: list[DataLoader[Any]]) -> list[float]:
    """Train for two epochs on the joined batches of ``loaders``; return the first weights."""
    device = next(module.parameters()).device
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for epoch in range(2):
        for loader in loaders:
            loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        for parts in zip(*loaders, strict=True):
            x, y = (torch.cat(both).to(device) for both in zip(*parts, strict=True))
            optimizer.zero_grad()
            nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()
    first: list[float] = next(module.parameters()).flatten().tolist()
    return first


def own_rows(rank: int, size: int) -> list[float]:
    wrapped = nn.parallel.DistributedDataParallel(network())
    return read(wrapped, sampled(size, range(rank, rank + 1)))
