"""Kernels that were compiled at run time, in graphs."""

from __future__ import annotations

import gc

import pytest
import torch
from backend import DEVICE, backend
from support import has_function, needs

SOURCES = {
    "elf-host": "void twice(const Group&, float* x) { *x *= 2; }",
    "opencl-c": "kernel void twice(global float* x) { *x *= 2; }",
}
pytestmark = [
    needs(torch.float32),
    pytest.mark.skipif(
        not has_function("modules", "load_module") or backend.kernel_format() not in SOURCES,
        reason="the device takes no kernels at run time, or none in a language that this file has",
    ),
]


def test_a_graph_has_their_launches_and_keeps_them() -> None:
    kernel = backend.compile_kernel(SOURCES[backend.kernel_format()], "twice")
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
