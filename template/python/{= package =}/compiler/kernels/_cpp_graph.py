"""What a graph is changed for before its calls are written in C++.

Calls go by PyTorch's executors of operators, which know no devices but their own as arguments, and no
results that are undefined tensors.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..._build import NAME
from ._operators import call_of

_aten = torch.ops.aten
_LIKE: dict[Any, Any] = {
    _aten.rand.default: _aten.rand_like.default,
    _aten.randn.default: _aten.randn_like.default,
    _aten.randint.default: _aten.randint_like.default,
    _aten.randint.low: _aten.randint_like.low_dtype,
}
ATTENTION = _aten._scaled_dot_product_fused_attention_overrideable.default
ATTENTION_BACKWARD = _aten._scaled_dot_product_fused_attention_overrideable_backward.default


def prepare(graph: torch.fx.GraphModule) -> None:
    """Put calls in the place of those that cannot be written, in the graphs within it as well.

    Raises:
        NotImplementedError: there is none for an operator.
    """
    for module in graph.modules():
        if isinstance(module, torch.fx.GraphModule):
            _prepare(module)


def _prepare(graph: torch.fx.GraphModule) -> None:
    for node in tuple(graph.graph.nodes):
        if node.target in _LIKE:
            _draw_like(graph.graph, node, _LIKE[node.target])
        elif node.target == ATTENTION and {_place(user) for user in node.users} == {0}:
            _attend(graph.graph, node)
        elif node.target == _aten.randperm.default:
            raise NotImplementedError(
                f"{NAME}: code in C++ cannot call {node.target}: pass its result in, or compile "
                "without AOTInductor and cpp_wrapper"
            )
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _place(user: torch.fx.Node) -> Any:
    return user.args[1] if user.target is operator.getitem else None


def _draw_like(graph: torch.fx.Graph, node: torch.fx.Node, like: Any) -> None:
    """Take device and type from an empty tensor, which Inductor makes itself."""
    value = node.meta["val"]
    *limits, size = node.args
    with graph.inserting_before(node):
        options = {"dtype": value.dtype, "device": value.device, "pin_memory": False}
        empty = graph.call_function(_aten.empty.memory_format, (size,), options)
        empty.meta["val"] = value
        drawn = graph.call_function(like, (empty, *limits))
    drawn.meta.update(node.meta)
    node.replace_all_uses_with(drawn)
    graph.erase_node(node)


def _attend(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Call the operator that has one result, where none of the others is used."""
    names = [each.name for each in ATTENTION._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    with graph.inserting_before(node):
        attended = graph.call_function(
            call_of(_aten.scaled_dot_product_attention.default),
            (given["query"], given["key"], given["value"], given.get("attn_bias")),
            {
                "dropout_p": given.get("dropout_p", 0.0),
                "is_causal": given.get("is_causal", False),
                "scale": given.get("scale"),
            },
        )
    attended.meta.update(node.meta, val=node.meta["val"][0])
    for user in tuple(node.users):
        user.replace_all_uses_with(attended)
        graph.erase_node(user)
    graph.erase_node(node)
