"""Operators in place of small Inductor kernels: copies, constants, small expressions.

On a device without generated kernels, Inductor calls an operator for each node of a graph. It still
generates a few kernels, such as copies that change the strides of a tensor.
"""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import ir
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.scheduler import BaseScheduling
from torch._inductor.virtualized import V

from .._build import NAME


class OperatorScheduling(BaseScheduling):
    """Writes each of these kernels as one call of ``copy_``, without fusion."""

    def can_fuse_vertical(self, node1: Any, node2: Any) -> bool:
        return False

    def can_fuse_horizontal(self, node1: Any, node2: Any) -> bool:
        return False

    def group_fn(self, sizes: Sequence[Sequence[sympy.Expr]]) -> tuple[tuple[sympy.Expr, ...], ...]:
        return tuple(tuple(each) for each in sizes)

    def codegen_sync(self) -> None:
        """Do nothing, as the calls are ordered on the stream."""

    def flush(self) -> None:
        """Do nothing, as no calls are pending."""

    def codegen_node(self, node: Any) -> None:
        for part in node.get_nodes():
            part.mark_run()
            _write(part.node)
        self.free_buffers_in_scheduler()


def _write(buffer: ir.ComputedBuffer) -> None:
    if not isinstance(buffer.data, ir.Pointwise):
        raise _unsupported(type(buffer.data).__name__)
    expressions = _Expressions(buffer.data.get_size(), buffer.get_device_or_error())
    with V.set_ops_handler(expressions):
        value = buffer.data.inner_fn(expressions.index)
    layout: Any = buffer.layout
    changes = isinstance(layout, ir.MutationLayoutSHOULDREMOVE)
    target = layout.target.codegen_reference() if changes else buffer.get_name()
    V.graph.wrapper_code.writeline(f"{target}.copy_({value.value})")


class _Expressions(DefaultHandler):
    """Converts Inductor's operations to Python expressions of tensors that broadcast."""

    def __init__(self, size: Sequence[sympy.Expr], device: torch.device) -> None:
        super().__init__()
        self.index = [sympy.Symbol(f"i{place}", integer=True) for place in range(len(size))]
        self._size = size
        self._device = device

    def load(self, name: str, index: sympy.Expr) -> str:
        strides, offset = self._steps(index)
        written = [
            V.graph.wrapper_code.codegen_python_shape_tuple(each) for each in (self._size, strides)
        ]
        return f"reinterpret_tensor({name}, {written[0]}, {written[1]}, {self._number(offset)})"

    def index_expr(self, expr: sympy.Expr, dtype: torch.dtype) -> str:
        steps, offset = self._steps(expr)
        terms = [f"torch.tensor({self._number(offset)}, dtype={dtype}, device={self._device!r})"]
        for place, (step, size) in enumerate(zip(steps, self._size, strict=True)):
            if step != 0:
                shape = ", ".join("-1" if other == place else "1" for other in range(len(steps)))
                numbers = (
                    f"torch.arange({self._number(size)}, dtype={dtype}, device={self._device!r})"
                )
                terms.append(f"({numbers} * {self._number(step)}).reshape({shape})")
        return f"({' + '.join(terms)})"

    def constant(self, value: Any, dtype: torch.dtype) -> str:
        return f"torch.full((), {value!r}, dtype={dtype}, device={self._device!r})"

    def to_dtype(self, x: str, dtype: torch.dtype, *_: Any, **__: Any) -> str:
        return f"{x}.to({dtype})"

    def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = {"and_": "logical_and", "or_": "logical_or"}.get(name, name)
        if kwargs or not hasattr(torch, function):
            raise _unsupported(name)
        return f"torch.{function}({', '.join(map(str, args))})"

    def _steps(self, index: sympy.Expr) -> tuple[list[sympy.Expr], sympy.Expr]:
        """Return the coefficients of the index variables in a linear expression, and its offset."""
        index = sympy.expand(index)
        steps = [index.coeff(symbol) for symbol in self.index]
        offset = index.subs(dict.fromkeys(self.index, 0))
        linear = sum(
            (step * symbol for step, symbol in zip(steps, self.index, strict=True)), offset
        )
        if sympy.expand(index - linear) != 0:
            raise _unsupported(f"the index {index}")
        return steps, offset

    @staticmethod
    def _number(value: sympy.Expr) -> str:
        return str(V.graph.wrapper_code.codegen_python_sizevar(value))


def _unsupported(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"{NAME}: compiled code would need a kernel for {what}, and calls operators only: use "
        'torch.compile(..., backend="aot_eager") for this model'
    )
