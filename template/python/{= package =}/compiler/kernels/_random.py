"""Random numbers in kernels: the same as in eager mode, from the generator's seed and offset.

One operator reserves all random numbers of a forward or backward pass. Kernels read seed and offset
from device memory, which graphs need. random.h defines the numbers.
"""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import ir
from torch._inductor.virtualized import ops
from torch.utils import _pytree

from ..._build import NAME
from ..._features import FEATURES
from ...devices import dtype_support
from . import dialect_of

_MOST_DIMENSIONS = 16
"""The maximum rank. With more dimensions, operators draw on the CPU."""
_DIGITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
"""Bits of the significand, by the dtypes that kernels draw."""


@dataclass(frozen=True)
class _Draw:
    """The 32-bit numbers of one operator's result, one for each element in row-major order."""

    state: Any
    """A tensor of two numbers: the seed, and the offset in blocks of four numbers."""
    first: int
    """The position of the operator's first number, relative to the offset."""
    size: Sequence[int]
    dtype: torch.dtype
    """The dtype of the result."""

    def number(self, index: Sequence[Any]) -> sympy.Expr:
        """Return the index of an element in row-major order."""
        steps = ir.FlexibleLayout.contiguous_strides(self.size)
        return sum((i * step for i, step in zip(index, steps, strict=True)), sympy.Integer(0))

    def place(self, index: Sequence[Any]) -> Any:
        """Return the position of an element's number in the generator's sequence."""
        first = self.state.make_loader()([sympy.Integer(1)])
        own = ops.index_expr(self.number(index) + self.first, torch.int64)
        return ops.add(ops.mul(first, ops.constant(4, torch.int64)), own)

    def lane(self, place: Any) -> Any:
        """Return the number at a position."""
        seed = self.state.make_loader()([sympy.Integer(0)])
        low, high = ops.constant(0, torch.int64), ops.constant(2**32, torch.int64)
        return ops.randint64(seed, place, low, high)

    def filled(self, value: Callable[[Sequence[Any]], Any], dtype: torch.dtype) -> Any:
        """Return a realized tensor, so that each element's value is computed once."""
        device = self.state.get_device()
        made = ir.Pointwise.create(
            device=device, dtype=dtype, inner_fn=value, ranges=list(self.size)
        )
        made.realize()
        return made

    def chosen(self, probability: float, dtype: torch.dtype) -> Any:
        """Return a tensor whose elements are 1 with this probability, else 0."""
        limit = math.ceil(probability * 2**32)

        def value(index: Sequence[Any]) -> Any:
            lane = self.lane(self.place(index))
            return ops.to_dtype(ops.lt(lane, ops.constant(limit, torch.int64)), dtype)

        return self.filled(value, dtype)


def _dropout(draw: _Draw, x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    kept = draw.chosen(1 - p, torch.bool)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    load, load_kept = x.make_loader(), kept.make_loader()

    def value(index: Sequence[Any]) -> Any:
        number = ops.mul(load(index), ops.to_dtype(load_kept(index), draw.dtype))
        return ops.mul(number, ops.constant(scale, draw.dtype))

    out = ir.Pointwise.create(
        device=x.get_device(), dtype=draw.dtype, inner_fn=value, ranges=list(draw.size)
    )
    return out, kept


def _bernoulli(draw: _Draw, x: Any, p: float = 0.5, generator: None = None) -> Any:
    return draw.chosen(p, draw.dtype)


def _uniform(draw: _Draw, *_: Any, **__: Any) -> Any:
    rounds_to_one = 1 - 2.0 ** -(_DIGITS[draw.dtype] + 1)

    def value(index: Sequence[Any]) -> Any:
        lane = draw.lane(draw.place(index))
        high = ops.bitwise_right_shift(lane, ops.constant(8, torch.int64))
        whole = ops.to_dtype(ops.to_dtype(high, torch.int32), torch.float32)
        number = ops.mul(whole, ops.constant(2.0**-24, torch.float32))
        if draw.dtype is not torch.float32:
            is_less = ops.lt(number, ops.constant(rounds_to_one, torch.float32))
            number = ops.where(is_less, number, ops.constant(0.0, torch.float32))
        return ops.to_dtype(number, draw.dtype)

    return draw.filled(value, draw.dtype)


def _normal(draw: _Draw, *_: Any, **__: Any) -> Any:
    def unit(lane: Any) -> Any:
        number = ops.to_dtype(lane, torch.float32)
        whole = ops.mul(number, ops.constant(2.0**-32, torch.float32))
        return ops.add(whole, ops.constant(2.0**-33, torch.float32))

    def value(index: Sequence[Any]) -> Any:
        # Two adjacent elements use the same two numbers.
        place = draw.place(index)
        even = unit(draw.lane(ops.bitwise_and(place, ops.constant(-2, torch.int64))))
        odd = unit(draw.lane(ops.bitwise_or(place, ops.constant(1, torch.int64))))
        radius = ops.sqrt(ops.mul(ops.constant(-2.0, torch.float32), ops.log(even)))
        angle = ops.mul(ops.constant(2 * math.pi, torch.float32), odd)
        number = ops.index_expr(draw.number(index), torch.int64)
        last_bit = ops.bitwise_and(number, ops.constant(1, torch.int64))
        is_odd = ops.ne(last_bit, ops.constant(0, torch.int64))
        turned = ops.where(is_odd, ops.sin(angle), ops.cos(angle))
        return ops.to_dtype(ops.mul(radius, turned), draw.dtype)

    return draw.filled(value, draw.dtype)


_aten = torch.ops.aten
ORDERED = torch.ops.higher_order.control_deps
_OPERATORS: dict[Any, Callable[..., Any]] = {
    _aten.native_dropout.default: _dropout,
    _aten.bernoulli.p: _bernoulli,
    _aten.rand.default: _uniform,
    _aten.rand_like.default: _uniform,
    _aten.randn.default: _normal,
    _aten.randn_like.default: _normal,
}


def draw_in_kernels(graph: torch.fx.GraphModule) -> None:
    """Replace random operators by draws in kernels, in the order of the generator's numbers.

    Operators with symbolic shapes are not replaced, nor are those that draw more than 32 bits for
    each element.
    """
    if not FEATURES["rng"].enabled or not dialect_of().is_philox:
        return
    for node in graph.graph.find_nodes(op="call_function", target=ORDERED):
        inner = _only_call(graph, node)
        if inner is not None and _is_known(inner, inner):
            free(graph, node, inner)
    group: list[torch.fx.Node] = []
    last: torch.fx.Node | None = None
    for node in list(graph.graph.nodes):
        if group and (_draws(node) or node.op == "output") and not _is_known(node, group[0]):
            _take(graph.graph, group, last)
            group = []
        if _is_known(node, group[0] if group else node):
            group.append(node)
        elif _draws(node):
            last = node


def free(graph: Any, node: torch.fx.Node, inner: torch.fx.Node) -> None:
    """Move an operator out of a subgraph that orders it after other random operators."""
    outer = dict(zip(inner.graph.find_nodes(op="placeholder"), node.args[2:], strict=True))
    with graph.graph.inserting_before(node):
        freed = graph.graph.node_copy(inner, outer.__getitem__)
    freed.meta.update(node.meta)
    node.replace_all_uses_with(freed)
    graph.graph.erase_node(node)


def _only_call(graph: Any, node: torch.fx.Node) -> torch.fx.Node | None:
    within = graph.get_submodule(str(node.args[1].target)).graph  # type: ignore[union-attr]
    calls = [each for each in within.nodes if each.op == "call_function"]
    return calls[0] if len(calls) == 1 else None


def _draws(node: torch.fx.Node) -> bool:
    """Return whether a node may draw numbers from a generator."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return isinstance(node.target, torch._ops.HigherOrderOperator)
    is_own = node.target.namespace not in ("aten", "prims")
    return is_own or torch.Tag.nondeterministic_seeded in node.target.tags


def _is_known(node: torch.fx.Node, first: torch.fx.Node) -> bool:
    """Return whether kernels can draw a node's numbers, from the same generator as ``first``."""
    if node.target not in _OPERATORS or node.kwargs.get("generator") is not None:
        return False
    value, other = _result(node), _result(first)
    if value is None or value.device.type != NAME or value.device != other.device:
        return False
    if value.dim() > _MOST_DIMENSIONS or not all(isinstance(each, int) for each in value.shape):
        return False
    if node.target is _aten.native_dropout.default and node.args[2] is False:
        return False
    is_left = node.meta.get("should_fallback", False)
    return value.dtype in _DIGITS and dtype_support(value.dtype) == "supported" and not is_left


def _result(node: torch.fx.Node) -> Any:
    return next(iter(_pytree.tree_leaves(node.meta.get("val"))), None)


def _take(
    graph: torch.fx.Graph, group: Sequence[torch.fx.Node], last: torch.fx.Node | None
) -> None:
    """Reserve the random numbers of a group of operators with one operator, after the last draw."""
    like = _tensor_of(graph, _result(group[0]).device, last)
    if like is None:
        return
    counts = [(math.prod(_result(node).shape) + 1) // 2 for node in group]  # philox_increment
    operator = getattr(torch.ops, NAME).philox_state.default
    with graph.inserting_before(group[0]):
        state = graph.call_function(operator, (like, sum(counts)))
    state.meta["val"] = _result(like).new_empty(2, dtype=torch.int64)
    blocks = 0
    for node, count in zip(group, counts, strict=True):
        value = _result(node)
        for user in [each for each in node.users if each.target == ORDERED]:
            behind = [state if each is node else each for each in user.args[0]]  # type: ignore[union-attr]
            user.args = (tuple(behind), *user.args[1:])
        node.target = _lowering(node.target, 4 * blocks, list(value.shape), value.dtype)
        node.args = (state, *node.args)
        blocks += count


def _tensor_of(
    graph: torch.fx.Graph, device: torch.device, last: torch.fx.Node | None
) -> torch.fx.Node | None:
    """Return a tensor on a device: the last drawn one, or an input of the graph."""
    drawn = [] if last is None else [last, *last.users]
    inputs: list[torch.fx.Node] = list(graph.find_nodes(op="placeholder"))
    for node in [*drawn, *inputs]:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.device == device:
            return node
    return None


def _lowering(operator: Any, first: int, size: list[int], dtype: torch.dtype) -> Any:
    """Return the lowering of an operator whose random numbers kernels draw."""

    def lower(state: Any, *arguments: Any, **keywords: Any) -> Any:
        draw = _Draw(state, first, size, dtype)
        return _OPERATORS[operator](draw, *arguments, **keywords)

    def metadata(state: Any, *arguments: Any, **keywords: Any) -> Any:
        return operator(*arguments, **keywords)

    lower._inductor_lowering_function = True  # type: ignore[attr-defined]
    lower._inductor_lowering_output_metadata_fn = metadata  # type: ignore[attr-defined]
    return lower


def _fake_state(like: torch.Tensor, blocks: int) -> torch.Tensor:
    return like.new_empty(2, dtype=torch.int64)


torch.library.register_fake(f"{NAME}::philox_state", _fake_state)
