"""Operators for which Inductor writes no kernel here."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import functools
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.codegen.common import pointwise_overrides_data
from torch._inductor.lowering import fallback_handler
from torch.utils import _pytree

from ..._build import NAME
from ...devices import dtype_support
from . import dialect_of
from ._dialect import Dialect
from ._epilogues import fuse_epilogues
from ._expressions import Expressions
from ._random import draw_in_kernels

_OTHERS = frozenset({"_assert_async", "convolution"})
"""Inductor writes no kernels for these, but its lowerings change their layouts."""
_FUNCTIONS = frozenset(
    {data.name for name, data in pointwise_overrides_data.items() if name not in vars(Expressions)}
    | {"erfinv", "special_erfinv", "frexp", "nextafter"}
)
"""Functions that C does not have, or not for 16-bit floating-point types."""
_INDICES = frozenset(
    {
        "_unsafe_index",
        "_unsafe_masked_index",
        "embedding",
        "gather",
        "index",
        "index_select",
        "max_pool2d_with_indices_backward",
        "max_pool3d_with_indices_backward",
        "take",
    }
)
_WRITERS = frozenset(
    {
        "_unsafe_index_put",
        "_unsafe_masked_index_put_accumulate",
        "index_put",
        "scatter",
        "scatter_add",
        "scatter_reduce",
    }
)
"""Operators that write to indices. Several values may be written or added to one element."""
_DIVISIONS = frozenset({"div", "div_", "floor_divide", "remainder", "fmod"})


def leave_operators(graph: torch.fx.GraphModule) -> None:
    """Mark the nodes for which Inductor calls this backend's operators."""
    dialect = dialect_of()
    draw_in_kernels(graph)
    if config.max_autotune or config.max_autotune_gemm:
        fuse_epilogues(graph)
    for node in graph.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload) or not _is_left(node, dialect):
            continue
        if node.target._opname in _WRITERS:
            # Inductor's fallback would write to the input in place, and lose the result.
            node.target = call_of(node.target)
        else:
            node.meta["should_fallback"] = True


@functools.cache
def call_of(operator: torch._ops.OpOverload) -> Any:
    """Return a lowering that calls an operator, even if Inductor has its own lowering."""
    call = fallback_handler(operator, add_to_fallback_set=False)

    def lower(*arguments: Any, **keywords: Any) -> Any:
        return call(*arguments, **keywords)

    lower._inductor_lowering_function = True  # type: ignore[attr-defined]
    # PyTorch 2.15 and later compute the output shapes with this after changes of the arguments.
    lower._inductor_lowering_output_metadata_fn = operator  # type: ignore[attr-defined]
    return lower


def _is_left(node: torch.fx.Node, dialect: Dialect) -> bool:
    target: Any = node.target
    if target.namespace not in ("aten", "prims"):
        return False
    name = target._opname
    if name != "copy" and _mixes_devices(node):
        return True
    if name in _OTHERS or name in _FUNCTIONS:
        return True
    types = {value.dtype for each in (node, *node.all_input_nodes) for value in _tensors(each)}
    if not all(_computes(dtype, dialect) for dtype in types):
        return True
    if dialect.is_in_order:
        return False
    divides = name in _DIVISIONS and any(not dtype.is_floating_point for dtype in types)
    return divides or name in _INDICES or name in _WRITERS


def _mixes_devices(node: torch.fx.Node) -> bool:
    """Return whether an operator on this device has a CPU tensor argument with dimensions."""
    taken = [value for each in node.all_input_nodes for value in _tensors(each)]
    is_here = any(value.device.type == NAME for value in taken)
    return is_here and any(value.device.type == "cpu" and value.dim() > 0 for value in taken)


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    values = _pytree.tree_leaves(node.meta.get("val"))
    return [value for value in values if isinstance(value, torch.Tensor)]


def _computes(dtype: torch.dtype, dialect: Dialect) -> bool:
    return dtype in dialect.types and dtype_support(dtype) == "supported"
