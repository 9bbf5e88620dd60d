"""The parameters of a case for support.toml: arguments, and properties of arrays."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

# The names of the numbers among a family's arguments, in their order. Dimensions count from the
# end, as in -1.
NAMES: Mapping[str, tuple[str, ...]] = {
    "arg_reduce": ("dim",),
    "scan": ("dim",),
    "gather": ("dim",),
    "scatter": ("dim",),
    "triangular": ("diagonal",),
    "sort": ("dim", "descending", "stable"),
    "top_k": ("dim", "largest", "sorted"),
    "softmax": ("dim",),
    "softmax_backward": ("dim",),
    "normalize": ("eps",),
    "add_rms_norm": ("eps",),
    "rotary": ("inverse",),
    "ternary": ("value",),
    "sequence": ("start", "step"),
    "update_scale": ("growth_factor", "backoff_factor", "growth_interval"),
    "cholesky": ("upper",),
    "eigh": ("upper",),
    "ldl": ("hermitian",),
    "ldl_solve": ("hermitian",),
}


class Placed(Protocol):
    """An array of a case: its size and its strides."""

    shape: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, counted in elements."""


def words(named: Mapping[str, Any]) -> str:
    """Parameters in the form of a case: "order=3 rank=2"."""
    return " ".join(f"{name}={word(value)}" for name, value in sorted(named.items()))


def by_name(text: str) -> Mapping[str, str]:
    """The parameters in a text of this form."""
    return dict(item.split("=", 1) for item in text.split())


def word(value: Any) -> str:
    """A value in the form of support.toml: 2 and 2.0 are equal, and an array is given or not."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return ",".join(map(word, value)) or "none"
    if isinstance(value, (int, float)):
        return f"{value:.10g}"
    return str(value).replace(" ", "")


def sizes(arguments: Sequence[Any]) -> str:
    """The sizes and the integers, such as a dimension, among a family's arguments."""
    words = []
    for argument in arguments:
        for item in argument if isinstance(argument, list) else [argument]:
            if _is_array(item):
                words.append("x".join(map(str, item.shape)) or "rank0")
            elif type(item) is int:
                words.append(str(item))
    return ",".join(words)


def of_call(family: str, arguments: Sequence[Any], more: Sequence[Any]) -> dict[str, Any]:
    """The names and values of a call's arguments, and properties of its arrays."""
    arrays = list(_arrays([*arguments, *more]))
    named = _of_arrays(arrays)
    plain = [value for value in (*arguments, *more) if isinstance(value, (bool, int, float))]
    named.update(zip(NAMES.get(family, ()), plain, strict=False))
    if "dim" in named and arrays:
        # The rank of the array along whose dimension the family reads.
        read = max(arrays, key=lambda array: len(array.shape))
        named["dim"] -= len(read.shape) if named["dim"] >= 0 else 0
    for value in (*arguments, *more):
        named.update(_of_descriptor(value))
    return named


def _arrays(arguments: Sequence[Any]) -> Iterator[Placed]:
    for argument in arguments:
        if isinstance(argument, list):
            yield from _arrays(argument)
        elif _is_array(argument):
            yield argument


def _is_array(argument: Any) -> bool:
    return hasattr(argument, "shape") and hasattr(argument, "strides")


def _of_arrays(arrays: Sequence[Placed]) -> dict[str, Any]:
    if not arrays:
        return {}
    return {
        "rank": max(len(array.shape) for array in arrays),
        "contiguous": all(map(_is_contiguous, arrays)),
    }


def _is_contiguous(array: Placed) -> bool:
    step = 1
    for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if size != 1 and stride != step:
            return math.prod(array.shape) == 0
        step *= size
    return True


def _of_descriptor(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a descriptor, such as MatmulParams. Other values have none."""
    if hasattr(value, "strides") or isinstance(value, (enum.Enum, str, list)) or value is None:
        return
    for name, kind in vars(type(value)).items():
        if not isinstance(kind, property):
            continue
        field = getattr(value, name)
        if isinstance(field, (bool, int, float, tuple, list)) or field is None:
            yield name, field
        elif isinstance(field, enum.Enum):
            yield name, field.name
        elif type(field).__name__ == "View":
            yield name, "given"
