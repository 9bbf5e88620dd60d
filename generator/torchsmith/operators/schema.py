"""PyTorch's description of an operator, read with torchgen, which is in PyTorch's wheel."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from torchsmith.configuration import SafeLoader
from torchsmith.errors import InputError, did_you_mean

_OPERATOR_NAME = re.compile(r"(?:aten::)?(?P<base>\w+?)(?:\.(?P<overload>\w+))?\Z")


class Argument(NamedTuple):
    """An argument as C++ writes it."""

    type: str
    name: str


@dataclass(frozen=True)
class Function:
    """One function of an operator, which needs a kernel.

    Attributes:
        name: As it is registered: "gelu", "gelu_" or "gelu.out".
        kind: How it returns its result.
        result: The C++ type of its result.
        arguments: Its arguments, its outputs included.
        outputs: The names of its outputs, for kind "out".
    """

    name: str
    kind: str  # "functional", "in-place" or "out"
    result: str
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Structured:
    """An operator whose shape checks and type promotion ATen exports.

    Attributes:
        meta: The class, "structured_gelu".
        over_iterator: Whether it is based on TensorIterator.
        arguments: The computation's arguments, as the dispatcher passes them.
    """

    meta: str
    over_iterator: bool
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Operator:
    """One form of an operator: the functions that take the same arguments."""

    base: str
    overload: str
    functions: tuple[Function, ...]
    structured: Structured | None

    @property
    def name(self) -> str:
        """The name that PyTorch prints."""
        return f"aten::{self.base}" + (f".{self.overload}" if self.overload else "")

    @property
    def identifier(self) -> str:
        """A name for files and functions, unique to this form."""
        return "_".join(filter(None, [self.base.strip("_"), self.overload.lower()]))

    def get(self, kind: str) -> Function | None:
        """Return the function of that kind."""
        return next((each for each in self.functions if each.kind == kind), None)


def operator_named(text: str) -> Operator:
    """Return the operator that ``text`` names: aten::gelu, gelu, aten::pow.Scalar.

    Raises:
        InputError: There is none, it has several overloads, or it needs no kernel.
    """
    torchgen = _torchgen()
    named = _OPERATOR_NAME.match(text)
    if named is None:
        raise InputError(f"'{text}' is not an operator's name, for instance aten::gelu")
    base, wanted = named["base"], named["overload"]
    rows = yaml.load((torchgen / "native_functions.yaml").read_text("utf-8"), SafeLoader)
    by_base = defaultdict(list)
    for row in rows:
        by_base[re.match(r"\w+", row["func"])[0]].append(row)  # type: ignore[index]
    if base.endswith("_") and base[:-1] in by_base:
        base = base[:-1]
    if base not in by_base:
        similar = did_you_mean(base, by_base).replace("'", "'aten::", 1)
        raise InputError(f"PyTorch has no operator 'aten::{base}'{similar}")
    forms = list(_forms(base, [*by_base[base], *by_base.get(base + "_", [])], torchgen))
    if not forms:
        raise InputError(
            f"'aten::{base}' needs no kernel: it is a view, or PyTorch composes it from others"
        )
    chosen = [form for form in forms if form.overload == (wanted or "")]
    if not chosen and wanted is None and len(forms) == 1:
        chosen = forms
    if not chosen:
        names = ", ".join(form.name for form in forms)
        problem = f"no overload '{wanted}' that needs a kernel" if wanted else f"{len(forms)} forms"
        raise InputError(f"'aten::{base}' has {problem}: choose from {names}")
    return chosen[0]


def _torchgen() -> Path:
    try:
        import torchgen
    except ImportError as error:
        raise InputError(
            "op add reads PyTorch's own list of operators: install torch beside torchsmith"
        ) from error
    return Path(str(torchgen.__file__)).parent / "packaged" / "ATen" / "native"


def _forms(base: str, rows: list[dict[str, Any]], folder: Path) -> Iterator[Operator]:
    """Yield the forms of an operator that need a kernel."""
    from torchgen.gen import parse_tags_yaml, pre_group_native_functions
    from torchgen.model import Location, NativeFunction, NativeFunctionsGroup, SchemaKind

    tags = parse_tags_yaml(str(folder / "tags.yaml"))
    parsed = [NativeFunction.from_yaml(row, Location("", 0), tags)[0] for row in rows]
    alone: dict[str, list[Any]] = defaultdict(list)
    for variants in pre_group_native_functions(parsed).values():
        # Where the function writes into an argument, as rrelu_with_noise does, its functional
        # variant has another name, and torchgen makes no group.
        functional, mutable = map(variants.get, (SchemaKind.functional, SchemaKind.mutable))
        group = NativeFunctionsGroup.from_dict(variants) if functional else None
        if group is None:
            for each in variants.values():
                alone[(mutable or each).func.name.overload_name].append(each)
            continue
        members = [each for each in (group.functional, group.inplace, group.out) if each]
        if functions := _wanted(members, structured=group.structured):
            overload = group.functional.func.name.overload_name
            yield Operator(base, overload, functions, _structured(group))
    for overload, members in alone.items():
        if functions := _wanted(members, structured=False):
            yield Operator(base, overload, functions, None)


def _wanted(members: list[Any], *, structured: bool) -> tuple[Function, ...]:
    """Return those that need a kernel: no views, and none that PyTorch composes of others."""
    return tuple(
        _function(each)
        for each in members
        if not each.has_composite_implicit_autograd_kernel
        and (structured or not each.has_composite_explicit_autograd_kernel)
        and not each.has_composite_explicit_autograd_non_functional_kernel
        and not each.is_view_op
    )


def _function(native: Any) -> Function:
    from torchgen.api.types import DispatcherSignature
    from torchgen.context import native_function_manager
    from torchgen.model import SchemaKind

    signature = DispatcherSignature.from_schema(native.func, symint=False)
    kinds = {SchemaKind.inplace: "in-place", SchemaKind.out: "out"}
    with native_function_manager(native):
        arguments = [_argument(each) for each in signature.arguments()]
        result = _cpp(signature.returns_type().cpp_type())
    return Function(
        name=str(native.func.name),
        kind=kinds.get(native.func.kind(), "functional"),
        result=result,
        arguments=tuple(arguments),
        outputs=tuple(each.name for each in native.func.arguments.out),
    )


def _structured(group: Any) -> Structured | None:
    """Return what the adaptor in csrc/aten/structured.h needs, or None if it does not apply."""
    from torchgen.api import meta, structured
    from torchgen.context import native_function_manager

    if not group.structured or group.out.precomputed or len(group.functional.func.returns) != 1:
        return None
    given = {"at::OptionalScalarRef": "const std::optional<at::Scalar>&"}
    with native_function_manager(group.out):
        bindings = structured.meta_arguments(group)
        arguments = [_argument(each) for each in bindings]
    if any(
        each.type in ("at::OptionalTensorRef", "const at::ITensorListRef&") for each in arguments
    ):
        return None
    return Structured(
        meta=f"structured_{meta.name(group)}",
        over_iterator=group.out.structured_inherits == "TensorIteratorBase",
        arguments=tuple(Argument(given.get(type, type), name) for type, name in arguments),
    )


def _argument(binding: Any) -> Argument:
    return Argument(_cpp(binding.nctype.cpp_type()), binding.name)


def _cpp(type: str) -> str:
    """Return a C++ type in this project's spelling."""
    return type.replace("::std::", "std::").replace(" &", "&").replace(",", ", ")
