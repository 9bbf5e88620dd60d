"""Compiles Jinja templates to data, which the page's interpreter (page/jinja.js) runs.

The page contains no copies of the template's rules: files and checks of names are rendered from
the template itself. Jinja parses it here; what the interpreter does not support is an error here.
"""

from __future__ import annotations

from typing import Any

from jinja2 import nodes

from torchsmith.jinja import own
from torchsmith.template import CATALOG

FILTERS = {
    "default", "first", "join", "last", "length", "list", "lower", "map", "regex_replace",
    "regex_search", "reject", "replace", "select", "selectattr", "string", "title", "to_json",
    "trim", "upper",
}  # fmt: skip
NAMED = {"to_json": {"ensure_ascii"}}
TESTS = {"defined", "in", "none", "string"}
METHODS = {"get", "items", "keys", "split", "startswith", "values"}
MACROS = "names"
"""The name under which the catalog's validators import the file of macros."""

Node = list[Any]
"""The kind of a node, followed by its operands."""


class UnknownConstructError(Exception):
    """The template uses something that the page's interpreter does not support."""


def compile_template(source: str, name: str) -> list[Node]:
    """Return a template's body as data.

    Raises:
        UnknownConstructError: naming the file and what in it the page cannot do.
    """
    try:
        return _body(own(CATALOG).parse(source).body)
    except UnknownConstructError as error:
        raise UnknownConstructError(
            f"{name}: the page's interpreter cannot do {error}: teach it in maintenance/site, "
            "or write the template without it"
        ) from error


def compile_macros(source: str, wanted: set[str]) -> dict[str, Node]:
    """Return some macros of a file, with their parameters."""
    found = own(CATALOG).parse(source).find_all(nodes.Macro)
    return {
        macro.name: [[argument.name for argument in macro.args], _body(macro.body)]
        for macro in found
        if macro.name in wanted
    }


def _body(body: list[nodes.Node]) -> list[Node]:
    return [_statement(node) for node in body]


def _statement(node: nodes.Node) -> Node:
    match node:
        case nodes.Output():
            return ["output", [_expression(part) for part in node.nodes]]
        case nodes.If():
            branches = [[_expression(node.test), _body(node.body)]]
            branches += [[_expression(branch.test), _body(branch.body)] for branch in node.elif_]
            return ["if", branches, _body(node.else_)]
        case nodes.For(recursive=False):
            test = _expression(node.test) if node.test else None
            return [
                "for", _target(node.target), _expression(node.iter), test,
                _body(node.body), _body(node.else_),
            ]  # fmt: skip
        case nodes.Assign():
            if isinstance(node.target, nodes.NSRef):
                return ["setattr", node.target.name, node.target.attr, _expression(node.node)]
            return ["set", _target(node.target), _expression(node.node)]
        case nodes.FilterBlock(filter=nodes.Filter() as filter):
            return ["filterblock", _filter(filter, subject=None), _body(node.body)]
        case nodes.Import(target=target) if target == MACROS:
            return ["output", []]
        case nodes.Include(ignore_missing=False):
            return ["include", _expression(node.template)]
    raise UnknownConstructError(f"the statement '{type(node).__name__}'")


def _expression(node: nodes.Node) -> Node:
    match node:
        case nodes.TemplateData(data=text):
            return ["text", text]
        case nodes.Const(value=value) if value is None or isinstance(value, (str, int, bool)):
            return ["text", value]
        case nodes.Name(name=name):
            return ["name", name]
        case nodes.Getattr(node=subject, attr=name):
            return ["get", _expression(subject), ["text", name]]
        case nodes.Getitem(node=subject, arg=nodes.Slice(start=start, stop=stop, step=None)):
            ends = [_expression(end) if end else None for end in (start, stop)]
            return ["slice", _expression(subject), *ends]
        case nodes.Getitem(node=subject, arg=key):
            return ["get", _expression(subject), _expression(key)]
        case nodes.Filter(node=subject) if subject is not None:
            return _filter(node, _expression(subject))
        case nodes.Test(node=subject, name=name, args=arguments) if name in TESTS:
            return ["test", name, _expression(subject), [_expression(arg) for arg in arguments]]
        case nodes.Call(node=nodes.Getattr(node=subject, attr=name), args=arguments) if (
            name in METHODS
        ):
            parts = [_expression(argument) for argument in arguments]
            return ["method", name, _expression(subject), parts]
        case nodes.Call(node=nodes.Getattr(node=nodes.Name(name=space), attr=name)) as call if (
            space == MACROS
        ):
            return ["call", name, [_expression(argument) for argument in call.args], {}]
        case nodes.Call(node=nodes.Name(name=name), args=arguments, kwargs=named):
            parts = [_expression(argument) for argument in arguments]
            return ["call", name, parts, {item.key: _expression(item.value) for item in named}]
        case nodes.Compare(expr=left, ops=[operand]) if operand.op in (
            "eq", "ne", "in", "notin", "gt", "lt", "gteq", "lteq",
        ):  # fmt: skip
            return ["compare", operand.op, _expression(left), _expression(operand.expr)]
        case nodes.And(left=left, right=right):
            return ["and", _expression(left), _expression(right)]
        case nodes.Or(left=left, right=right):
            return ["or", _expression(left), _expression(right)]
        case nodes.Not(node=operand):
            return ["not", _expression(operand)]
        case nodes.Neg(node=nodes.Const(value=value)):
            return ["text", -value]
        case nodes.Add(left=left, right=right):
            return ["add", _expression(left), _expression(right)]
        case nodes.Concat(nodes=parts):
            return ["concat", [_expression(part) for part in parts]]
        case nodes.CondExpr(test=test, expr1=first, expr2=second):
            other = _expression(second) if second else ["text", ""]
            return ["choose", _expression(test), _expression(first), other]
        case nodes.List(items=items) | nodes.Tuple(items=items):
            return ["list", [_expression(item) for item in items]]
        case nodes.Dict(items=pairs):
            return ["dict", [[_expression(pair.key), _expression(pair.value)] for pair in pairs]]
    raise UnknownConstructError(f"the expression '{node}'")


def _filter(node: nodes.Filter, subject: Node | None) -> Node:
    named = {item.key: _expression(item.value) for item in node.kwargs}
    if node.name not in FILTERS or not named.keys() <= NAMED.get(node.name, set()):
        raise UnknownConstructError(f"the filter '{node.name}' as it is used")
    arguments = [_expression(argument) for argument in node.args]
    return ["filter", node.name, subject, arguments, *([named] if named else [])]


def _target(node: nodes.Node) -> list[str]:
    """The names that are bound, several where a tuple is unpacked."""
    items = node.items if isinstance(node, nodes.Tuple) else [node]
    return [item.name for item in items if isinstance(item, nodes.Name)]
