"""Training steps, eager and by a graph, from the same initial state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from backend import DEVICE, backend

WARM_UP = 2
Optimizer = Callable[[Sequence[torch.nn.Parameter]], torch.optim.Optimizer]


@dataclass
class Run:
    """The losses and the final weights of a training run."""

    losses: list[list[float]]
    weights: list[list[float]]


def run(
    model: torch.nn.Module,
    loss_of: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor],
    make: Optimizer,
    batches: Sequence[torch.Tensor],
    *,
    graphed: bool,
) -> Run:
    """Train on the batches. If ``graphed``, replay a graph after WARM_UP eager steps."""
    model = model.to(DEVICE)
    optimizer = make(list(model.parameters()))
    batch = batches[0].to(DEVICE)
    torch.manual_seed(7)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    losses = []
    side = backend.Stream()
    side.wait_stream(backend.current_stream())
    with backend.stream(side):
        for values in batches[:WARM_UP]:
            batch.copy_(values)
            losses.append(step().cpu().tolist())
    backend.current_stream().wait_stream(side)
    graph, loss = backend.Graph(), batch
    if graphed:
        with backend.graph(graph):
            loss = step()
    for values in batches[WARM_UP:]:
        batch.copy_(values)
        if graphed:
            graph.replay()
        else:
            loss = step()
        losses.append(loss.cpu().tolist())
    return Run(losses, [weight.cpu().flatten().tolist() for weight in model.parameters()])
