"""Reductions: how a work item accumulates values, and how work items merge their results."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ._dialect import Dialect


@dataclass(frozen=True)
class Reduction:
    """The state and steps of a reduction, on variables ``{a0}``, ``{a1}`` … of the work item."""

    types: tuple[torch.dtype, ...]
    first: tuple[str, ...]
    take: str
    """A statement that accumulates the values ``{v0}``, ``{v1}`` …"""
    merge: str
    """A statement that merges the variables of another work item, ``{b0}``, ``{b1}`` …"""
    results: tuple[int, ...] = (0,)
    """The indices of the variables that are results."""
    as_bool: bool = False
    """Whether the result is a bool although the variable has another type."""


def reduction_of(kind: str, dtype: torch.dtype, dialect: Dialect) -> Reduction:
    """Return the reduction with Inductor's name ``kind``, computed in ``dtype``.

    Raises:
        NotImplementedError: the reduction is not supported.
    """
    type_ = dialect.types[dtype]
    if kind == "any":
        # 32 bits like most other variables, as narrower ones prevent vectorization of the loop.
        taken = "{a0} = {v0} ? 1 : {a0};"
        return Reduction((torch.int32,), ("0",), taken, taken.replace("v0", "b0"), as_bool=True)
    if kind in ("sum", "prod", "xor_sum"):
        sign, first = {"sum": ("+", 0), "prod": ("*", 1), "xor_sum": ("^", 0)}[kind]
        taken = f"{{a0}} = {dialect.wrapped('{a0}', sign, '{v0}', dtype)};"
        return Reduction(
            (dtype,), (dialect.constant(first, dtype),), taken, taken.replace("v0", "b0")
        )
    if kind in ("max", "min"):
        better = _better(dtype, ">" if kind == "max" else "<")
        taken = "{a0} = " + better.format(new="{v0}", old="{a0}") + " ? {v0} : {a0};"
        return Reduction(
            (dtype,), (_worst(kind, dtype, dialect),), taken, taken.replace("v0", "b0")
        )
    if kind.startswith("arg"):
        return _arg_reduction(kind, dtype, dialect)
    if kind in ("welford_reduce", "welford_combine"):
        zero = dialect.constant(0, dtype)
        merge = _welford("b", type_)
        single = (
            f"{{{{ {{a2}} += 1; const {type_} apart = {{v0}} - {{a0}}; {{a0}} += apart / {{a2}};"
            " {a1} += apart * ({v0} - {a0}); }}"
        )
        taken = single if kind == "welford_reduce" else _welford("v", type_)
        return Reduction((dtype,) * 3, (zero,) * 3, taken, merge, (0, 1, 2))
    raise NotImplementedError(f"there are no kernels for the reduction {kind}")


def _welford(other: str, type_: str) -> str:
    """Return the statement that merges two triples of mean, sum of squared deviations and count."""
    b0, b1, b2 = (f"{{{other}{place}}}" for place in range(3))
    return (
        f"{{{{ const {type_} more = {{a2}} + {b2}, apart = {b0} - {{a0}},"
        f" share = more > 0 ? {b2} / more : 0;"
        f" {{a1}} += {b1} + apart * apart * {{a2}} * share;"
        " {a0} += apart * share; {a2} = more; }}"
    )


def _arg_reduction(kind: str, dtype: torch.dtype, dialect: Dialect) -> Reduction:
    extreme = kind[3:6]
    better = _better(dtype, ">" if extreme == "max" else "<")
    taken = (
        "if ({a1} < 0 || " + better.format(new="{v0}", old="{a0}") + ")"
        " {{ {a0} = {v0}; {a1} = {v1}; }}"
    )
    # The first of equal values wins.
    merge = (
        "if ({b1} >= 0 && ({a1} < 0 || "
        + better.format(new="{b0}", old="{a0}")
        + " || (!"
        + better.format(new="{a0}", old="{b0}")
        + " && {b1} < {a1})))"
        " {{ {a0} = {b0}; {a1} = {b1}; }}"
    )
    results = (0, 1) if kind.endswith("_with_value") else (0,) if kind.endswith("_value") else (1,)
    first = (_worst(extreme, dtype, dialect), "-1")
    return Reduction((dtype, torch.int64), first, taken, merge, results)


def _better(dtype: torch.dtype, sign: str) -> str:
    """Return the condition that ``new`` replaces ``old``. A NaN replaces every other value."""
    if dtype.is_floating_point:
        return f"({{new}} {sign} {{old}} || ({{new}} != {{new}} && {{old}} == {{old}}))"
    return f"({{new}} {sign} {{old}})"


def _worst(kind: str, dtype: torch.dtype, dialect: Dialect) -> str:
    if dtype.is_floating_point:
        return dialect.constant(float("-inf" if kind == "max" else "inf"), dtype)
    if dtype is torch.bool:
        return dialect.constant(kind == "min", dtype)
    limits = torch.iinfo(dtype)
    return dialect.constant(limits.min if kind == "max" else limits.max, dtype)
