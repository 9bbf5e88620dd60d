"""Trains the GPT of gpt.py in shards: torchrun --nproc-per-node 2 examples/gpt_sharded.py

Each process has its part of every weight (FSDP2) and trains on its part of every batch. With
--checkpoints FOLDER, checkpoints are saved there, and the next start resumes from the last one. The
number of processes may change, but must divide the batch.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from gpt import BATCH, DEVICE, GPT, passages
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard
from torch.nn import functional


class Training(Stateful):
    """The whole state of the training. Checkpoints have each weight once, however it is sharded."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = GPT().to(DEVICE)
        for block in self.model.blocks:
            fully_shard(block)
        fully_shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.draws = torch.Generator().manual_seed(0)
        self.done = 0

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        draws = self.draws.get_state()
        return {"model": model, "optimizer": optimizer, "draws": draws, "done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        self.draws.set_state(state["draws"])
        self.done = state["done"]

    def step(self) -> float:
        """Train on one batch, and return its loss, averaged over the processes."""
        rank, size = dist.get_rank(), dist.get_world_size()
        batch = passages(self.draws)[rank * BATCH // size : (rank + 1) * BATCH // size].to(DEVICE)
        self.optimizer.zero_grad()
        scores = self.model(batch[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.done += 1
        whole = loss.detach()
        dist.all_reduce(whole, dist.ReduceOp.AVG)
        return whole.item()


def last_checkpoint(folder: Path) -> Path | None:
    """Return the last complete checkpoint: its metadata is written last."""
    whole = [path.parent for path in folder.glob("*/.metadata")]
    return max(whole, key=lambda path: int(path.name), default=None)


def train(steps: int, folder: Path | None, every: int) -> None:
    training = Training()
    first = dist.get_rank() == 0
    if folder and (last := last_checkpoint(folder)):
        dcp.load({"training": training}, checkpoint_id=last)
    if first:
        print(f"{dist.get_world_size()} processes, the first on", end=" ")
        print(f"{training.model.head.weight.device}, go on from step {training.done}", flush=True)

    while training.done < steps:
        loss = training.step()
        if training.done % every:
            continue
        if first:
            print(f"step {training.done:3}: loss {loss:.5f}", flush=True)
        if folder:
            dcp.save({"training": training}, checkpoint_id=folder / str(training.done))

    written = training.model.write("after nineteen comes")  # each process has a part
    if first:
        print("It writes:", written)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--checkpoints", type=Path, help="a folder that all processes share")
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    options = parser.parse_args()

    local = int(os.environ["LOCAL_RANK"])
    torch.accelerator.set_device_index(local % torch.accelerator.device_count())
    dist.init_process_group()
    if BATCH % dist.get_world_size():
        parser.error(f"{dist.get_world_size()} processes do not divide a batch of {BATCH}")
    train(options.steps, options.checkpoints, options.every)
    if dist.get_rank() == 0:
        torch.get_device_module(DEVICE).fallback_report()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
