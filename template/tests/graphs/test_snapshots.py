"""Pools of graphs in snapshots of the memory."""

from __future__ import annotations

import torch
from backend import DEVICE, backend


def test_graphs_that_share_a_pool_share_its_segment() -> None:
    x = torch.ones(2, device=DEVICE)
    pool = backend.graph_pool_handle()
    first, second = backend.Graph(), backend.Graph()
    with backend.graph(first, pool=pool):
        y = x + 1
    with backend.graph(second, pool=pool):
        z = y * 2
    first.replay()
    second.replay()
    assert z.tolist() == [4, 4]
    pools = [item["segment_pool_id"] for item in backend.memory_snapshot()]
    assert pools.count(pool) == 1
