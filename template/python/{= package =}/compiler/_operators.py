"""Inductor's code where all that the device has are its operators: a call of one for each node."""

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
"""The views that never copy, and before them those that do not if their tensor is contiguous."""


def leave_views(graph: torch.fx.GraphModule) -> None:
    """Let Inductor make the views itself, which costs less than a call of an operator."""
    for node in graph.graph.nodes:
        source = node.args[0] if node.args else None
        if not isinstance(source, torch.fx.Node):
            continue
        if _name(node.target) in ("t", "transpose"):
            # Inductor has another name for these two.
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
    # The functions take no None in a list of tensors, and their default reduction is another one.
    text = str(schema)
    return not schema.is_mutable and "Tensor?[]" not in text and " reduction=" not in text


def _is_contiguous(value: Any) -> bool:
    # Unknown sizes are no reason to guard on them.
    return (
        isinstance(value, torch.Tensor)
        and not value._has_symbolic_sizes_strides
        and value.is_contiguous()
    )


class OperatorWrapper(Wrapper):
    """Calls operators by PyTorch's Python functions, in a third of the time that others take."""

    def write_header(self) -> None:
        super().write_header()
        self.header.writeline("from torch._C import _VariableFunctions as operators")

    def _generate_extern_kernel_alloc_helper(self, extern_kernel: Any, args: Any) -> None:
        operator: Any = getattr(extern_kernel, "op_overload", None)
        name = _name(operator)
        if name is not None and hasattr(_FUNCTIONS, name) and _is_simple(operator._schema):
            extern_kernel.python_kernel_name = f"operators.{name}"
        super()._generate_extern_kernel_alloc_helper(extern_kernel, args)
