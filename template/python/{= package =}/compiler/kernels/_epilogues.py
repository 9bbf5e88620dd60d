"""``mode="max-autotune"``: fuses a matrix product with its epilogue if that is faster.

MatmulParams of matmul.h has an activation and an addend. A device with a unit for them saves a
memory round trip; on other devices Inductor's kernel is faster. So both are measured.
"""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.pattern_matcher import Match, PatternExpr, fwd_only, gen_pattern
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn import functional

from ..._build import NAME
from ._tuning import best_seconds

_aten = torch.ops.aten
_VIEWS = frozenset({_aten.view.default, _aten.reshape.default, _aten._unsafe_view.default})
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "gelu_tanh": functools.partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}


@dataclass(frozen=True)
class _Fusion:
    """A product with its epilogue."""

    product: torch.fx.Node
    """mm or addmm."""
    activation: str
    addend: torch.fx.Node | None
    last: torch.fx.Node
    """The node whose value the fused operator computes, possibly with another shape."""


def fuse_epilogues(graph: torch.fx.GraphModule) -> None:
    """Replace a product and its epilogue by one operator if that is faster on the device."""
    products = (_aten.mm.default, _aten.addmm.default)
    for node in list(graph.graph.nodes):
        if node.target not in products or not _is_known(node):
            continue
        fusion = _fusion_of(node)
        if fusion is not None and is_faster(fusion):
            _replace(graph.graph, fusion)


def _is_known(node: torch.fx.Node) -> bool:
    value = node.meta["val"]
    sizes = [each.meta["val"] for each in node.all_input_nodes]
    numbers = dict(node.kwargs)
    return (
        value.device.type == NAME
        and value.dtype in _TYPES
        and all(number == 1 for number in numbers.values())
        and all(isinstance(size, int) for each in sizes for size in each.shape)
    )


def _fusion_of(product: torch.fx.Node) -> _Fusion | None:
    """Return the product with the longest epilogue whose intermediate results have one user."""
    activation, last = _activation_of(_behind_view(product))
    addend, last = _addend_of(_behind_view(last)) or (None, last)
    if activation == "none" and addend is None:
        return None
    return _Fusion(product, activation, addend, last)


def _addend_of(node: torch.fx.Node) -> tuple[torch.fx.Node, torch.fx.Node] | None:
    """Return the tensor of the same shape and dtype that is added to a node, and the sum."""
    users = list(node.users)
    if len(users) != 1 or users[0].target != _aten.add.Tensor or users[0].kwargs:
        return None
    (total,) = users
    addend = total.args[1] if total.args[0] is node else total.args[0]
    if not isinstance(addend, torch.fx.Node) or addend is node:
        return None
    values = [each.meta["val"] for each in (node, addend, total)]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return None
    is_alike = len({(value.shape, value.dtype) for value in values}) == 1
    return (addend, total) if is_alike else None


def _behind_view(node: torch.fx.Node) -> torch.fx.Node:
    """Return the view of a node if that is its only user, else the node."""
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].target in _VIEWS else node


def _activation_of(node: torch.fx.Node) -> tuple[str, torch.fx.Node]:
    """Return the activation that is the only use of a node, and its last operator."""
    patterns = _patterns(node.meta["val"].dtype)
    following = list(node.users)
    for _ in range(12):  # the maximum number of operators in a decomposed activation
        for candidate in following:
            for name, pattern in patterns.items():
                match = pattern.match(candidate)
                if isinstance(match, Match) and _is_whole(match, node):
                    return name, candidate
        following = [user for each in following[:1] for user in each.users]
    return "none", node


def _is_whole(match: Match, node: torch.fx.Node) -> bool:
    return match.kwargs["x"] is node and all(user in match.nodes for user in node.users)


@functools.cache
def _patterns(dtype: torch.dtype) -> dict[str, PatternExpr]:
    """Return the graph pattern of each activation."""
    example = torch.empty(2, 3, dtype=dtype)
    patterns = {}
    for name, function in _ACTIVATIONS.items():
        if name != "none":
            patterns[name] = gen_pattern(_search_for(function), [example], fwd_only)
    return patterns


def _search_for(function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    def search(x: torch.Tensor) -> torch.Tensor:
        return function(x)

    return search


def is_faster(fusion: _Fusion) -> bool:
    """Return whether the fused operator takes less time than the separate operators."""
    described = tuple(map(_described, _factors(fusion.product)))
    try:
        with unset_fake_temporarily(), torch.no_grad():
            return _measured(described, fusion.activation, fusion.addend is not None)
    except torch.OutOfMemoryError:
        return False


def _described(node: torch.fx.Node | None) -> Any:
    if node is None:
        return None
    value = node.meta["val"]
    return tuple(value.shape), value.stride(), value.dtype, value.device


@functools.cache
def _measured(factors: tuple[Any, Any, Any], activation: str, is_added: bool) -> bool:
    a, b, bias = map(_example, factors)
    addend = a.new_zeros(a.shape[0], b.shape[1]) if is_added else None
    activate = _ACTIVATIONS[activation]

    def apart() -> None:
        made = activate(a @ b if bias is None else torch.addmm(bias, a, b))
        _ = made if addend is None else made + addend

    def together() -> None:
        _operator()(a, b, bias, activation, addend)

    return best_seconds(together, a.device) < best_seconds(apart, a.device)


def _example(described: Any) -> Any:
    if described is None:
        return None
    size, strides, dtype, device = described
    return torch.empty_strided(size, strides, dtype=dtype, device=device).zero_()


def _operator() -> Any:
    return getattr(torch.ops, NAME).matmul_epilogue.default


def _factors(product: torch.fx.Node) -> tuple[Any, Any, Any]:
    """Return the matrices of a product, and its bias or None."""
    *bias, a, b = product.args
    return a, b, bias[0] if bias else None


def _replace(graph: torch.fx.Graph, fusion: _Fusion) -> None:
    product, last = fusion.product, fusion.last
    sizes = list(product.meta["val"].shape)
    with graph.inserting_before(last):
        addend = fusion.addend
        if addend is not None and list(addend.meta["val"].shape) != sizes:
            flat = graph.call_function(_aten.reshape.default, (addend, sizes))
            flat.meta["val"] = addend.meta["val"].reshape(sizes)
            addend = flat
        fused = graph.call_function(_operator(), (*_factors(product), fusion.activation, addend))
        fused.meta["val"] = product.meta["val"].new_empty(sizes)
        value = last.meta["val"]
        result = fused
        if value.shape != fused.meta["val"].shape:
            result = graph.call_function(_aten.reshape.default, (fused, list(value.shape)))
            result.meta["val"] = fused.meta["val"].reshape(value.shape)
    last.replace_all_uses_with(result)
    graph.eliminate_dead_code()


def _fake_product(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "none",
    addend: torch.Tensor | None = None,
) -> torch.Tensor:
    return a.new_empty(a.shape[0], b.shape[1])


torch.library.register_fake(f"{NAME}::matmul_epilogue", _fake_product)
