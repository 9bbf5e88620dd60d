"""Changes to a graph before its calls are written in C++.

The C++ code calls operators through PyTorch's executors. They do not support devices of this
backend as arguments, or undefined tensors as results.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor.virtualized import V

from ..._build import NAME
from ._operators import call_of
from ._random import ORDERED, free

_aten = torch.ops.aten
_LIKE: dict[Any, Any] = {
    _aten.rand.default: _aten.rand_like.default,
    _aten.randn.default: _aten.randn_like.default,
    _aten.randint.default: _aten.randint_like.default,
    _aten.randint.low: _aten.randint_like.low_dtype,
}
_SCATTERS = frozenset({_aten.scatter_reduce.two, _aten.scatter.reduce, _aten.scatter.value_reduce})
_WRITERS = frozenset({_aten.index_put.default, _aten._unsafe_index_put.default})
ATTENTION = _aten._scaled_dot_product_fused_attention_overrideable.default
ATTENTION_BACKWARD = _aten._scaled_dot_product_fused_attention_overrideable_backward.default


def prepare(graph: torch.fx.GraphModule) -> None:
    """Replace calls that C++ code does not support, also in subgraphs.

    Raises:
        NotImplementedError: an operator has no replacement.
    """
    for module in graph.modules():
        if isinstance(module, torch.fx.GraphModule):
            _prepare(module)


def _prepare(graph: Any) -> None:
    for node in graph.graph.find_nodes(op="call_function", target=ORDERED):
        _free_attention(graph, node)
    for node in tuple(graph.graph.nodes):
        if node.target in _LIKE:
            _draw_like(graph.graph, node, _LIKE[node.target])
        elif node.target == ATTENTION and _gives_first_only(node):
            _attend(graph.graph, node)
        elif node.target in _SCATTERS or _takes_masks(node):
            # Inductor calls C functions for these, which exist only for the devices in its list.
            node.target = call_of(node.target)
        elif node.target == _aten.randperm.default:
            raise NotImplementedError(
                f"{NAME}: code in C++ cannot call {node.target}: pass its result in, or compile "
                "without AOTInductor and cpp_wrapper"
            )
    for node in tuple(graph.graph.nodes):
        if isinstance(node.target, torch._ops.OpOverload):
            _write_numbers(graph.graph, node)
            # Kernels that draw use an operator that a package does not include.
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                node.meta["should_fallback"] = True
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _heads(node: Any) -> Any:
    return node.meta["val"].shape[-3]


def _gives_first_only(node: Any) -> bool:
    """Return whether only the first result is used, except by nodes that only order operators."""
    return all(user.target == ORDERED or user.args[1:] == (0,) for user in node.users)


def _draw_like(graph: Any, node: Any, like: Any) -> None:
    """Replace the node by the ``_like`` operator on an empty tensor, which Inductor creates."""
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


def _takes_masks(node: Any) -> bool:
    if node.target not in _WRITERS:
        return False
    places = [each.meta["val"].dtype for each in node.args[1] if each is not None]
    return any(dtype in (torch.bool, torch.uint8) for dtype in places)


def _write_numbers(graph: Any, node: Any) -> None:
    """Write the defaults of keyword numbers, and tensors for numbers passed as complex tensors."""
    schema = node.target._schema.arguments
    node.kwargs = {
        each.name: each.default_value
        for each in schema
        if each.kwarg_only
        and isinstance(each.real_type, torch.NumberType)
        and each.has_default_value()
    } | node.kwargs
    arguments = list(node.args)
    for place, (given, wanted) in enumerate(zip(node.args, schema, strict=False)):
        is_tensor = isinstance(wanted.type, torch.TensorType)
        if is_tensor and isinstance(given, (int, float)) and node.meta["val"].is_complex():
            like = node.meta["val"].new_empty((), dtype=torch.tensor(given).dtype)
            options = {"dtype": like.dtype, "device": like.device, "pin_memory": False}
            with graph.inserting_before(node):
                arguments[place] = graph.call_function(_aten.full.default, ([], given), options)
            arguments[place].meta["val"] = like
    node.args = tuple(arguments)


def _free_attention(graph: Any, node: Any) -> None:
    """Move attention out of a subgraph that orders it after other random operators."""
    within = graph.get_submodule(str(node.args[1].target)).graph
    found = within.find_nodes(op="call_function", target=ATTENTION)
    if not found:
        return
    (attention,) = found
    if _given(attention).get("dropout_p"):
        if not V.aot_compilation:
            return
        raise NotImplementedError(
            f"{NAME}: a package cannot call several attentions with dropout: call "
            "model.eval() before compilation"
        )
    free(graph, node, attention)


def _given(attention: Any) -> dict[str, Any]:
    names = [each.name for each in ATTENTION._schema.arguments]
    return dict(zip(names, attention.args, strict=False)) | dict(attention.kwargs)


def _attend(graph: Any, node: Any) -> None:
    """Replace attention by the operator with one result, as the other results are unused."""
    given = _given(node)
    with graph.inserting_before(node):
        attended = graph.call_function(
            call_of(_aten.scaled_dot_product_attention.default),
            (given["query"], given["key"], given["value"], given.get("attn_bias")),
            {
                "dropout_p": given.get("dropout_p", 0.0),
                "is_causal": given.get("is_causal", False),
                "scale": given.get("scale"),
                "enable_gqa": _heads(given["query"]) != _heads(given["key"]),
            },
        )
    attended.meta.update(node.meta, val=node.meta["val"][0])
    for user in tuple(node.users):
        if user.target == ORDERED:
            user.replace_input_with(node, attended)
        else:
            user.replace_all_uses_with(attended)
            graph.erase_node(user)
    graph.erase_node(node)
