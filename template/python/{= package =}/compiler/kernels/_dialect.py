"""A language of kernels, for the classes that write them: types, functions and the code around them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

FUNCTIONS = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp exp2 expm1 floor fma "
    "hypot lgamma log log10 log1p log2 sin sinh sqrt tan tanh trunc"
)
"""Those of C's mathematics that Inductor calls by the same names."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, in the order of the call."""

    name: str
    kind: str
    """``"read"`` and ``"written"`` for addresses; ``"long"``, ``"float"`` and ``"double"`` for scalars."""
    dtype: torch.dtype | None = None
    """Of the elements behind an address."""


@dataclass(frozen=True)
class Index:
    """A digit of ``xindex`` or ``r0_index``: its quotient by ``step``, modulo ``length``."""

    name: str
    text: str
    step: int | None
    """None where it changes from call to call, as for ``length``."""
    length: int | None


@dataclass
class Accumulator:
    """The state of a reduction in a work item, in one or more variables."""

    parts: list[tuple[str, torch.dtype, str]]
    """Name, type and first value of each variable."""
    merge: str
    """Takes the values of another work item in: a statement on ``{a0}``, ``{b0}``, ``{a1}`` …"""
    results: list[tuple[str, int]]
    """The variables of the row that get values in the end, and the places of the parts that have these."""


@dataclass
class Phase:
    """A part of a kernel that all work items finish before the next begins."""

    is_loop: bool
    """Whether it goes over what is reduced; otherwise it is done once for each row."""
    is_ordered: bool
    """Whether a work item may write where another one has."""
    indices: list[Index]
    """The numbers of placeholders in the lines below."""
    body: list[str]
    stores: list[str] = field(default_factory=list)
    """For each row once, where it is no loop."""
    accumulators: list[Accumulator] = field(default_factory=list)


@dataclass
class Program:
    """A kernel for Inductor: rows of numbers, each of which may be reduced.

    The rows are numbered by ``xindex`` up to ``rows``, what is reduced by ``r0_index`` up to
    ``columns``, which is None for a kernel that reduces nothing. A group does ``group_rows`` rows,
    with ``lanes`` work items for each.
    """

    name: str
    parameters: list[Parameter]
    index: torch.dtype
    rows: str
    columns: str | None
    group_rows: int
    lanes: int
    variables: list[tuple[str, torch.dtype]]
    """Those that keep their value from one phase to the next, one for each row."""
    phases: list[Phase]


class Dialect(ABC):
    """A language like C.

    Expressions are the same in all dialects, where the names below stand for the same: ``schar``,
    ``uchar``, ``short``, ``ushort``, ``int``, ``uint``, ``long`` (64 bits), ``ulong``, ``float``,
    ``double``; the functions of C's ``math.h`` for both floating types; ``as_float(x)`` and the like
    for the bits of a value as another type of that size; ``INFINITY`` and ``NAN``.
    """

    code_format: str
    """The device's name for this code; see ``kernel_format``."""
    is_in_order = False
    """Whether work items run one after the other, and ``fault_index(index, size)`` and
    ``fault_division()`` make the stream fail. Operators that take indices or divide whole numbers are
    left as they are where it does not."""
    is_philox = False
    """Whether the device's random numbers are those that kernels.h says at ``random``: ``random =
    "philox"`` in its support.toml. Kernels draw them then, by ``PHILOX`` in the prelude; otherwise
    operators do."""
    prelude: str
    """Stands before each kernel."""
    address_space = ""
    """Stands before the type of what an address points to."""
    float_functions: Mapping[str, str] = {}
    """Other names for functions of C whose arguments are of type float."""
    options: Sequence[str] = ()
    """For the compiler of the language."""
    types: Mapping[torch.dtype, str] = {
        torch.bool: "bool",
        torch.uint8: "uchar",
        torch.int8: "schar",
        torch.int16: "short",
        torch.uint16: "ushort",
        torch.int32: "int",
        torch.uint32: "uint",
        torch.int64: "long",
        torch.uint64: "ulong",
        torch.float16: "float",
        torch.bfloat16: "float",
        torch.float32: "float",
        torch.float64: "double",
    }
    """Of values, while something is computed with them."""
    memory_types: Mapping[torch.dtype, str] = {
        torch.bool: "uchar",
        torch.float16: "ushort",
        torch.bfloat16: "ushort",
    }
    """Of elements in memory, where they are others."""

    def memory_type(self, dtype: torch.dtype) -> str:
        """Return the type of an element in memory."""
        return self.memory_types.get(dtype) or self.types[dtype]

    def unpack(self, element: str, dtype: torch.dtype) -> str:
        """Return the value of an element in memory."""
        function = {torch.float16: "half_to_float", torch.bfloat16: "bfloat16_to_float"}.get(dtype)
        if function is not None:
            return f"{function}({element})"
        return f"({element} != 0)" if dtype is torch.bool else element

    def pack(self, value: str, dtype: torch.dtype) -> str:
        """Return what is in memory for a value."""
        function = {torch.float16: "float_to_half", torch.bfloat16: "float_to_bfloat16"}.get(dtype)
        return f"{function}({value})" if function else f"({self.memory_type(dtype)})({value})"

    def declared(self, parameter: Parameter) -> str:
        """Return a parameter as the head of a function has it."""
        if parameter.dtype is None:
            return f"{parameter.kind} {parameter.name}"
        space = self.address_space + ("const " if parameter.kind == "read" else "")
        return f"{space}{self.memory_type(parameter.dtype)}* {parameter.name}"

    def wrapped(self, one: str, sign: str, other: str, dtype: torch.dtype) -> str:
        """Return a sum, a difference or a product, of whole numbers as PyTorch has it: without what is
        beyond their type, of which C says nothing where they have a sign."""
        type_ = self.types[dtype]
        if type_ not in ("int", "long"):  # narrower ones are computed as int
            return f"{one} {sign} {other}"
        return f"({type_})((u{type_}){one} {sign} (u{type_}){other})"

    def constant(self, value: float, dtype: torch.dtype) -> str:
        """Return a literal."""
        if dtype is torch.bool:
            return "true" if value else "false"
        if not dtype.is_floating_point:
            value = int(value)
            if value == -(2**63):
                return "(-9223372036854775807L - 1)"
            text = f"{value}L" if dtype in (torch.int64, torch.uint64) else f"{value}"
        elif math.isnan(value):
            return "NAN"
        elif math.isinf(value):
            text = "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = repr(float(value)) + ("" if dtype is torch.float64 else "f")
        return f"({text})" if text.startswith("-") else text

    def whole(self, source: str) -> str:
        """Return what the compiler of the language gets for the source of a kernel."""
        return f"{self.prelude}\n{source}"

    def is_usable(self) -> bool:
        """Return whether this machine has what compiles the language."""
        return True

    @abstractmethod
    def shape(self, columns: int | None, is_outer: bool) -> tuple[int, int]:
        """Return how many rows a group does, and how many work items do each; powers of 2.

        Args:
            columns: how many there are, as far as that is known; None where nothing is reduced.
            is_outer: whether neighbours in memory are of different rows.
        """

    def other_shapes(self, columns: int | None) -> list[tuple[int, int]]:
        """Return shapes that ``mode="max-autotune"`` compares with that of :meth:`shape`."""
        return []

    @abstractmethod
    def write(self, program: Program) -> str:
        """Return the source of a kernel."""

    @abstractmethod
    def launch_items(self, program: Program) -> int:
        """Return how many work items a group is launched with."""


ELEMENTS = """\
inline float bfloat16_to_float(ushort x) { return as_float((uint)x << 16); }
inline ushort float_to_bfloat16(float x) {
  const uint bits = as_uint(x);
  return (x != x) ? (ushort)0x7fc0 : (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float half_to_float(ushort x) {
  const float small = as_float((uint)(x & 0x7fff) << 13) * 0x1p112f;
  const uint bits = as_uint(small) | ((x & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u);
  return as_float(bits | (uint)(x & 0x8000) << 16);
}
inline ushort float_to_half(float x) {
  const uint sign = as_uint(x) & 0x80000000u;
  const uint bits = as_uint(x) ^ sign;
  const uint subnormal = as_uint(as_float(bits) + 0.5f) - as_uint(0.5f);
  const uint normal = (bits - 0x38000000u + 0xfff + ((bits >> 13) & 1)) >> 13;
  const uint large = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint half_bits = bits >= 0x477ff000u ? large : bits < 0x38800000u ? subnormal : normal;
  return (ushort)(half_bits | sign >> 16);
}
"""
"""Conversions of the small floating types, in what all dialects have."""

PHILOX = """\
inline long philox_lane(long seed, long number) {
  WORD c0 = (uint)(number >> 2), c1 = (uint)(number >> 34), c2 = 0, c3 = 0;
  WORD k0 = (uint)seed, k1 = (uint)((ulong)seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const ulong product0 = (ulong)0xd2511f53u * c0, product2 = (ulong)0xcd9e8d57u * c2;
    c0 = (WORD)(product2 >> 32) ^ c1 ^ k0;
    c2 = (WORD)(product0 >> 32) ^ c3 ^ k1;
    c1 = (WORD)product2 & 0xffffffffu;
    c3 = (WORD)product0 & 0xffffffffu;
    k0 = (k0 + 0x9e3779b9u) & 0xffffffffu;
    k1 = (k1 + 0xbb67ae85u) & 0xffffffffu;
  }
  const WORD low = number & 1 ? c1 : c0, high = number & 1 ? c3 : c2;
  return (long)(number & 2 ? high : low);
}
"""
"""A 32-bit number of Philox 4x32-10, by its place in the sequence, for a WORD of 32 bits or more."""


def listed(lines: Sequence[str]) -> str:
    """Return the lines of a function's body, indented."""
    text, depth = "", 1
    for line in map(str.strip, lines):
        depth -= line.startswith("}")
        text += f"{'  ' * depth}{line}\n"
        depth += line.endswith("{")
    return text
