"""What stays an operator, though Inductor would write a kernel for it."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

from typing import Any

import torch
from torch._inductor.codegen.common import pointwise_overrides_data
from torch.utils import _pytree

from ...devices import dtype_support
from ...kernels import kernel_format
from . import known_dialects
from ._dialect import Dialect
from ._expressions import Expressions

_ASSERTIONS = frozenset({"_assert_async", "_assert_scalar"})
_FUNCTIONS = frozenset(
    {data.name for name, data in pointwise_overrides_data.items() if name not in vars(Expressions)}
    | {"erfinv", "special_erfinv", "frexp", "nextafter"}
)
"""Those that C has not."""
_INDICES = frozenset(
    [
        "_unsafe_index",
        "_unsafe_masked_index",
        "embedding",
        "gather",
        "index",
        "index_put",
        "index_put_",
        "index_select",
        "scatter",
        "scatter_",
        "scatter_add",
        "scatter_add_",
        "scatter_reduce",
        "scatter_reduce_",
        "take",
    ]
)
_SUMS = frozenset(
    [
        "_unsafe_index_put_accumulate",
        "embedding_dense_backward",
        "scatter_add",
        "scatter_add_",
        "scatter_reduce",
        "scatter_reduce_",
        "_unsafe_masked_index_put_accumulate",
    ]
)
"""Those where several values may go to one place."""
_PUTS = frozenset({"index_put", "index_put_", "_unsafe_index_put"})
_DIVISIONS = frozenset({"div", "div_", "floor_divide", "remainder", "fmod"})


def leave_operators(graph: torch.fx.GraphModule) -> None:
    """Mark the nodes for which this backend's operators are called."""
    dialect = known_dialects()[kernel_format()]
    for node in graph.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and _is_left(node, dialect):
            node.meta["should_fallback"] = True


def _is_left(node: torch.fx.Node, dialect: Dialect) -> bool:
    target: Any = node.target
    if target.namespace not in ("aten", "prims"):
        return False
    name = target._opname
    if name in _ASSERTIONS or name in _FUNCTIONS or name in _SUMS:
        return True
    if name in _PUTS and (node.kwargs.get("accumulate") or True in node.args[3:]):
        return True
    types = {value.dtype for each in (node, *node.all_input_nodes) for value in _tensors(each)}
    if not all(_computes(dtype, dialect) for dtype in types):
        return True
    if dialect.finds_faults:
        return False
    divides = name in _DIVISIONS and any(not dtype.is_floating_point for dtype in types)
    return divides or name in _INDICES


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    values = _pytree.tree_leaves(node.meta.get("val"))
    return [value for value in values if isinstance(value, torch.Tensor)]


def _computes(dtype: torch.dtype, dialect: Dialect) -> bool:
    return dtype in dialect.types and dtype_support(dtype) == "computed"
