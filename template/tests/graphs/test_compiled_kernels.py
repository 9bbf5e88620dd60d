"""Graphs with kernels of ``compile_kernel``."""

from __future__ import annotations

import gc

import torch
from backend import DEVICE, backend
from run_time_kernels import TWICE, takes_kernels
from support import needs

pytestmark = [needs(torch.float32), takes_kernels(TWICE)]


def test_a_graph_keeps_compiled_kernels_that_it_launches() -> None:
    kernel = backend.compile_kernel(TWICE[backend.kernel_format()], "twice")
    x = torch.ones(1, device=DEVICE)
    graph = backend.Graph()
    with backend.graph(graph):
        kernel(args=[x])
        x += 1
        kernel(args=[x])
    assert x.item() == 1
    del kernel
    gc.collect()
    for expected in (6, 26, 106):
        graph.replay()
        assert x.item() == expected
