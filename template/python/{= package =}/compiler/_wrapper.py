"""Writes the code of a graph and of the graphs inside it."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols


class Wrapper(PythonWrapperCodegen):
    """Writes the calls of a graph. A subclass also writes the subgraphs.

    Tracing returns wrong strides for some operators with non-contiguous arguments, such as
    `copysign` of a transposed tensor, and may do so for custom operators. Code generated for wrong
    strides would read wrong elements. So the code compares the strides of these results, and copies
    a result if they differ.
    """

    @classmethod
    def create(
        cls,
        is_subgraph: bool,
        subgraph_name: Any,
        parent_wrapper: Any,
        partition_signatures: Any = None,
    ) -> PythonWrapperCodegen:
        """Return a wrapper for a graph, or for a subgraph of the graph of ``parent_wrapper``."""
        if not is_subgraph:
            return cls()
        within: Any = type(f"Subgraph{cls.__name__}", (cls, SubgraphPythonWrapperCodegen), {})
        wrapper: PythonWrapperCodegen = within(subgraph_name, parent_wrapper, partition_signatures)
        return wrapper

    def write_header(self) -> None:
        super().write_header()
        self.header.writeline(f"from {__name__} import as_traced")

    def make_allocation(self, name: str, device: Any, *arguments: Any, **keywords: Any) -> str:
        """Write the device with its index, as Inductor writes only the type of unknown devices."""
        line: str = super().make_allocation(name, device, *arguments, **keywords)
        return line.replace(f"device='{device.type}'", f"device='{device}'")

    def _generate_extern_kernel_alloc_helper(self, extern_kernel: Any, args: Any) -> None:
        super()._generate_extern_kernel_alloc_helper(extern_kernel, args)
        self._compare(extern_kernel, extern_kernel)

    def codegen_multi_output(self, node: Any) -> None:
        super().codegen_multi_output(node)
        self._compare(node, node.inputs[0])

    def _compare(self, result: Any, kernel: Any) -> None:
        if may_lie_otherwise(result, kernel):
            name, strides = result.get_name(), self.codegen_shape_tuple(result.get_stride())
            self.writeline(f"{name} = as_traced({name}, {strides})")


def may_lie_otherwise(result: Any, kernel: Any) -> bool:
    """Return whether the strides of an operator's result may differ from the traced ones."""
    operator = getattr(kernel, "op_overload", None)
    is_aten = getattr(operator, "namespace", "aten") == "aten"
    is_plain = is_aten and all(map(_is_contiguous, getattr(kernel, "inputs", ())))
    if is_plain or not isinstance(result.layout, ir.Layout):
        return False
    return not free_unbacked_symbols(result.get_stride())  # the code here has no unbacked symbols


def _is_contiguous(argument: Any) -> bool:
    layout = argument.maybe_get_layout()
    return layout is None or bool(layout.is_contiguous())


def as_traced(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Return the tensor, or a copy with ``strides`` if its strides differ."""
    actual = tensor.stride()
    if actual == strides or all(
        size == 1 or one == other
        for size, one, other in zip(tensor.shape, actual, strides, strict=True)
    ):
        return tensor
    copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)
