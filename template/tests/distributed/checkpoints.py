"""Training that stops after half of its steps and continues on any number of processes."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from distributed.mesh import make_mesh
from distributed.parallel import adam, network
from distributed.training import STEPS, train
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

HALF = STEPS // 2


def divided(size: int) -> nn.Module:
    """Return a network with sharded weights; for one process a plain one, on the CPU."""
    from torch.distributed.fsdp import fully_shard

    if size == 1:
        return network("cpu")
    module = network()
    mesh = make_mesh(size)
    for part in (*module[1].children(), module):
        fully_shard(part, mesh=mesh)
    return module


def state(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    weights, moments = get_state_dict(module, optimizer)
    return {"weights": weights, "moments": moments}


def first_half(rank: int, size: int, folder: str) -> list[float]:
    module = divided(size)
    optimizer = adam(module)
    losses = train(module, rank, size, optimizer, range(HALF))
    dcp.save(state(module, optimizer), checkpoint_id=folder, no_dist=size == 1)
    return losses


def second_half(rank: int, size: int, folder: str) -> list[float]:
    module = divided(size)
    with torch.no_grad():
        for weight in module.parameters():
            weight.fill_(7.0)
    optimizer = adam(module)
    loaded = state(module, optimizer)
    dcp.load(loaded, checkpoint_id=folder, no_dist=size == 1)
    set_state_dict(
        module,
        optimizer,
        model_state_dict=loaded["weights"],
        optim_state_dict=loaded["moments"],
    )
    return train(module, rank, size, optimizer, range(HALF, STEPS))


def single_process_losses() -> list[float]:
    """Return the losses of one process on the CPU without an interruption."""
    module = network("cpu")
    return train(module, 0, 1, adam(module))
