"""Variations of the arguments of a valid call, one argument at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from backend import DEVICE
from conformance.argument_calls import Call
from conformance.samples import tensors_of

DTYPES = ("int64", "bool", "complex64", "float16", "float8_e4m3fn")
PLACES = {"on the CPU": "cpu", "on another device": f"{DEVICE}:1", "on meta": "meta"}
WHOLE = (-1, 0, 2**31, 2**62, -(2**62))
REAL = (-1.0, 0.0, float("nan"), float("inf"), -float("inf"), 2.0**62)
ABSENT: dict[str, tuple[Any, ...]] = {
    "int": (-1, 2**62),
    "SymInt": (-1, 2**62),
    "float": (float("nan"), -1.0),
    "number": (float("nan"), -1),
    "ScalarType": (torch.int32, torch.bool, torch.float8_e4m3fn),
}
"""Values in place of None, by the type in the schema."""


@dataclass(frozen=True)
class Variation:
    """A change of one argument of a call, or of one member of a list."""

    argument: str
    index: int | None
    what: str
    value: Any = None

    def __str__(self) -> str:
        place = self.argument if self.index is None else f"{self.argument}[{self.index}]"
        return f"{place} {self.what}"

    def apply(self, arguments: dict[str, Any], place: str) -> dict[str, Any]:
        """Return the arguments with this one changed. ``place``: the device of the tensors."""
        changed = dict(arguments)
        given = changed[self.argument]
        old = given if self.index is None else given[self.index]
        new = self.change(old, place) if isinstance(old, torch.Tensor) else self.value
        if self.index is not None:
            new = [*given[: self.index], new, *given[self.index + 1 :]]
        changed[self.argument] = new
        return changed

    def change(self, old: torch.Tensor, place: str) -> Any:
        if self.what in PLACES:
            return old.to(PLACES[self.what])
        if self.what.startswith("of dtype"):
            return old.cpu().to(self.value).to(place)
        if self.what == "of a storage without memory":
            old.untyped_storage().resize_(0)
            return old
        return (
            SIZES[self.what](old).clone(memory_format=torch.contiguous_format)
            if self.what in SIZES
            else None
        )

    @property
    def is_about_places(self) -> bool:
        return self.what in PLACES or self.what == "of a storage without memory"

    def is_elsewhere(self, call: Call) -> bool:
        """Whether the call must raise or give the result of the valid call. Calls with a tensor on
        meta, or with a single tensor on the CPU, are not checked: other kernels run.
        """
        several = len(tensors_of(call.arguments)) > 1
        return self.what == "on another device" or (self.what == "on the CPU" and several)


SIZES = {
    "of one element": lambda tensor: tensor.flatten()[:1],
    "without elements": lambda tensor: tensor.flatten()[:0] if tensor.dim() < 2 else tensor[:0],
    "of an empty dimension": lambda tensor: tensor.narrow(-2, 0, 0),
    "shorter": lambda tensor: tensor.narrow(0, 0, tensor.size(0) - 1),
    "longer": lambda tensor: torch.cat([tensor, tensor[:1]]),
    "narrower": lambda tensor: tensor.narrow(-1, 0, tensor.size(-1) - 1),
    "wider": lambda tensor: torch.cat([tensor, tensor[..., :1]], -1),
    "of a dimension less": lambda tensor: tensor.select(0, 0),
    "of a dimension more": lambda tensor: torch.stack([tensor, tensor]),
}


def of_tensor(tensor: torch.Tensor) -> Iterator[tuple[str, Any]]:
    """Yield the variations of a tensor."""
    for what in (*PLACES, "of a storage without memory", "None"):
        yield what, None
    for name in DTYPES:
        if (dtype := getattr(torch, name)) is not tensor.dtype:
            yield f"of dtype {name}", dtype
    for what, change in SIZES.items():
        with suppress(Exception):
            if change(tensor).shape != tensor.shape:
                yield what, None


def of_number(number: Any) -> Iterator[tuple[str, Any]]:
    """Yield other values in place of a number, dtype or string."""
    others: tuple[Any, ...] = ()
    if isinstance(number, bool):
        others = (not number,)
    elif isinstance(number, int):
        others = WHOLE
    elif isinstance(number, (float, complex)):
        others = REAL
    elif isinstance(number, torch.dtype):
        others = (torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn, torch.float64)
    elif isinstance(number, str):
        others = ("nonsense",)
    for other in others:
        if other != number:
            yield f"= {other}", other


def variations(call: Call) -> Iterator[Variation]:
    """Yield all variations of the arguments of a call."""
    for item in call.overload._schema.arguments:
        value = call.arguments.get(item.name)
        if isinstance(value, (list, tuple)):
            members = sorted({0, len(value) - 1}) if value else []
            for index in members:
                of = of_tensor if isinstance(value[index], torch.Tensor) else of_number
                for what, other in of(value[index]):
                    yield Variation(item.name, index, what, other)
            yield Variation(item.name, None, "empty", [])
            yield Variation(item.name, None, "twice", [*value, *value])
        elif isinstance(value, torch.Tensor):
            for what, other in of_tensor(value):
                yield Variation(item.name, None, what, other)
        elif value is None:
            for other in ABSENT.get(
                str(item.real_type).removeprefix("Optional[").removesuffix("]"), ()
            ):
                yield Variation(item.name, None, f"= {other}", other)
        else:
            named = "ScalarType" in str(item.real_type) and isinstance(value, int)  # a default
            for what, other in of_number(torch.float32 if named else value):
                yield Variation(item.name, None, what, other)
