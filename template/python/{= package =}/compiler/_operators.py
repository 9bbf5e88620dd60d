"""Inductor's kernels, where the device's own operators are all there is."""

from __future__ import annotations

from typing import Any

from torch._inductor.scheduler import BaseScheduling


class OperatorScheduling(BaseScheduling):
    def can_fuse_vertical(self, node1, node2): return False
    def can_fuse_horizontal(self, node1, node2): return False
    def group_fn(self, sizes): return tuple(tuple(s) for s in sizes)
    def flush(self): pass
    def codegen_sync(self): pass
    def codegen_node(self, node):
        raise NotImplementedError(f"POINTWISE {node} {[n.node for n in node.get_nodes()]}")
