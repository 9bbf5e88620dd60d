"""Trains one model by DeepSpeed in every way, and by DistributedDataParallel, under ``torchrun``.

``zero.py FILE WAY...`` writes the losses and fallbacks of each way to the file, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

DEVICE = os.environ.get("DS_ACCELERATOR") or torch.accelerator.current_accelerator().type
STEPS, ROWS, RATE = 6, 8, 0.01
ADAM = {"lr": RATE, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
OFFLOAD = {"device": "cpu", "pin_memory": True}


def model() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
    return nn.Sequential(nn.Linear(8, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 4))


def batches(steps: range = range(STEPS)) -> list[tuple[Tensor, Tensor]]:
    """Return this rank's half of each batch."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for _ in range(steps.stop):
        x = torch.randn(ROWS, 5, 8, generator=generator)
        y = torch.randn(ROWS, 5, 4, generator=generator)
        mine = slice(dist.get_rank(), None, dist.get_world_size())
        made.append((x[mine].to(DEVICE), y[mine].to(DEVICE)))
    return made[steps.start :]


def steps_of(
    forward: Callable[[Tensor], Tensor], step: Callable[[Tensor], None], steps: range = range(STEPS)
) -> list[float]:
    """Return the losses of whole batches."""
    losses = []
    for x, y in batches(steps):
        loss = nn.functional.mse_loss(forward(x).float(), y)
        step(loss)
        whole = loss.detach().clone()
        dist.all_reduce(whole, dist.ReduceOp.AVG)
        losses.append(whole.item())
    return losses


def by_ddp(dtype: torch.dtype, *, empty_step: bool) -> list[float]:
    """Train with float32 copies of the parameters for the optimizer, as DeepSpeed does.

    In bfloat16 without ZeRO, DeepSpeed begins with a step without gradients.
    """
    wrapped = nn.parallel.DistributedDataParallel(model().to(DEVICE, dtype))
    parameters = list(wrapped.parameters())
    copies = [nn.Parameter(parameter.detach().float()) for parameter in parameters]
    optimizer = torch.optim.AdamW(copies, **ADAM)
    if empty_step:
        for copy in copies:
            copy.grad = torch.zeros_like(copy)
        optimizer.step()

    def step(loss: Tensor) -> None:
        wrapped.zero_grad()
        loss.backward()
        for copy, parameter in zip(copies, parameters, strict=True):
            assert parameter.grad is not None
            copy.grad = parameter.grad.float()
        nn.utils.clip_grad_norm_(copies, 1.0)
        optimizer.step()
        with torch.no_grad():
            for copy, parameter in zip(copies, parameters, strict=True):
                parameter.copy_(copy)

    return steps_of(lambda x: wrapped(x.to(dtype)), step)


def engine_of(stage: int, dtype: torch.dtype, offload: str) -> Any:
    import deepspeed

    zero: dict[str, Any] = {"stage": stage}
    if stage == 3:
        zero |= {"stage3_param_persistence_threshold": 0}
    if offload:
        zero |= {"offload_optimizer": OFFLOAD}
        zero |= {"offload_param": OFFLOAD} if stage == 3 else {}
    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": ROWS // dist.get_world_size(),
        "gradient_clipping": 1.0,
        "zero_optimization": zero,
        "bf16": {"enabled": dtype is torch.bfloat16},
    }
    options: dict[str, Any] = {}
    made = model()
    if offload == "torch":
        # DeepSpeed's own Adam for the host is compiled at its first use.
        config["zero_force_ds_cpu_optimizer"] = False
        options["optimizer"] = torch.optim.AdamW(made.parameters(), **ADAM)
    else:
        config["optimizer"] = {"type": "AdamW", "params": ADAM}
    return deepspeed.initialize(
        model=made, config=config, model_parameters=made.parameters(), **options
    )[0]


def train(engine: Any, dtype: torch.dtype, steps: range = range(STEPS)) -> list[float]:
    def step(loss: Tensor) -> None:
        engine.backward(loss)
        engine.step()

    return steps_of(lambda x: engine(x.to(dtype)), step, steps)


def by_zero(stage: int, dtype: torch.dtype, offload: str) -> list[float]:
    engine = engine_of(stage, dtype, offload)
    assert str(engine.device) == f"{DEVICE}:{os.environ['LOCAL_RANK']}"
    losses = train(engine, dtype)
    engine.destroy()
    return losses


def by_checkpoint(stage: int, dtype: torch.dtype, folder: str) -> list[float]:
    """Train half of the steps, save, and continue in another engine that loads the checkpoint."""
    half = STEPS // 2
    engine = engine_of(stage, dtype, "")
    losses = train(engine, dtype, range(half))
    engine.save_checkpoint(folder)
    engine.destroy()
    engine = engine_of(stage, dtype, "")
    engine.load_checkpoint(folder)
    losses += train(engine, dtype, range(half, STEPS))
    engine.destroy()
    return losses


def run(way: str, folder: str) -> list[float]:
    """Train by a way such as ``ddp-bfloat16``, ``ddp-bfloat16-empty``, ``3-float32``,
    ``3-float32-host``, ``3-float32-torch`` or ``2-float32-checkpoint``.
    """
    kind, name, *more = way.split("-")
    dtype: torch.dtype = getattr(torch, name)
    if kind == "ddp":
        return by_ddp(dtype, empty_step=more == ["empty"])
    if more == ["checkpoint"]:
        return by_checkpoint(int(kind), dtype, f"{folder}/{way}")
    return by_zero(int(kind), dtype, more[0] if more else "")


def main(file: str, ways: list[str]) -> None:
    import deepspeed

    device: Any = torch.get_device_module(DEVICE)
    device.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    shared = [tempfile.mkdtemp() if dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(shared)
    found = {}
    for way in ways:
        device.reset_fallback_stats()
        print("rank", dist.get_rank(), "trains by", way, flush=True)
        losses = run(way, shared[0])
        found[way] = {"losses": losses, "fallbacks": list(device.fallback_stats())}
    if dist.get_rank() == 0:
        Path(file).write_text(json.dumps(found), "utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
