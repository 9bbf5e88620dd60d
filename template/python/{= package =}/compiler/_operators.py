"""Inductor's code for a device without generated kernels: one operator call for each node."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

from typing import Any

import torch
from torch._inductor.lowering import lowerings

from ._wrapper import Wrapper

_FUNCTIONS = torch._C._VariableFunctions
_CONTIGUOUS = frozenset({"reshape", "view", "_unsafe_view", "unflatten"})
_VIEWS = frozenset({"alias", "detach", "expand", "permute", "select", "slice", "unsqueeze"})
"""Operators of _VIEWS never copy. Those of _CONTIGUOUS do not copy a contiguous tensor."""


def leave_views(graph: torch.fx.GraphModule) -> None:
    """Let Inductor create the views itself, which costs less than an operator call."""
    for node in graph.graph.nodes:
        source = node.args[0] if node.args else None
        if not isinstance(source, torch.fx.Node):
            continue
        if _name(node.target) in ("t", "transpose"):
            # Inductor has a lowering for permute instead of these two.
            order = list(range(source.meta["val"].dim()))
            if len(order) > 1:
                one, other = node.args[1:] or (0, 1)
                order[one], order[other] = order[other], order[one]
            node.target, node.args = torch.ops.aten.permute.default, (source, order)
        name = _name(node.target)
        if node.target in lowerings and (
            name in _VIEWS or (name in _CONTIGUOUS and _is_contiguous(source.meta.get("val")))
        ):
            node.meta["custom"] = {**node.meta.get("custom", {}), "compile_with_inductor": True}


def _name(target: Any) -> str | None:
    if isinstance(target, torch._ops.OpOverload) and target.namespace == "aten":
        return target._opname
    return None


def _is_simple(schema: Any) -> bool:
    # The Python functions accept no None in a list of tensors, and have another default reduction.
    text = str(schema)
    return not schema.is_mutable and "Tensor?[]" not in text and " reduction=" not in text


def _is_contiguous(value: Any) -> bool:
    # Do not add guards on symbolic sizes.
    return (
        isinstance(value, torch.Tensor)
        and not value._has_symbolic_sizes_strides
        and value.is_contiguous()
    )


class OperatorWrapper(Wrapper):
    """Calls PyTorch's Python functions, which takes a third of the time of other operator calls."""

    def write_header(self) -> None:
        super().write_header()
        self.header.writeline("from torch._C import _VariableFunctions as operators")

    def _generate_extern_kernel_alloc_helper(self, extern_kernel: Any, args: Any) -> None:
        operator: Any = getattr(extern_kernel, "op_overload", None)
        name = _name(operator)
        if name is not None and hasattr(_FUNCTIONS, name) and _is_simple(operator._schema):
            extern_kernel.python_kernel_name = f"operators.{name}"
        super()._generate_extern_kernel_alloc_helper(extern_kernel, args)
