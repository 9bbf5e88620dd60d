"""The interface of a kernel language: types, functions and the code around a kernel's body."""

from __future__ import annotations

import hashlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

FUNCTIONS = (
    "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc exp exp2 expm1 floor fma "
    "hypot lgamma log log10 log1p log2 sin sinh sqrt tan tanh trunc"
)
"""Functions of C's ``math.h`` that Inductor calls by the same names."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, in the order of the call."""

    name: str
    kind: str
    """``"read"`` and ``"written"`` for addresses; ``"long"``, ``"float"`` and ``"double"`` for scalars."""
    dtype: torch.dtype | None = None
    """The dtype of the elements at an address."""


@dataclass(frozen=True)
class Index:
    """A digit of ``xindex`` or ``r0_index``: its quotient by ``step``, modulo ``length``."""

    name: str
    text: str
    step: int | None
    """None if it changes between calls. The same applies to ``length``."""
    length: int | None


@dataclass
class Accumulator:
    """The state of a reduction in a work item, in one or more variables."""

    parts: list[tuple[str, torch.dtype, str]]
    """Name, dtype and initial value of each variable."""
    merge: str
    """A statement on ``{a0}``, ``{b0}``, ``{a1}`` … that merges the values of another work item."""
    results: list[tuple[str, int]]
    """The row's variables for the results, and the index of the part that each is assigned from."""


@dataclass
class Phase:
    """A part of a kernel that all work items finish before the next begins."""

    is_loop: bool
    """Whether it loops over the reduced columns; otherwise it runs once for each row."""
    is_ordered: bool
    """Whether work items may write to the same address."""
    indices: list[Index]
    """The indices that the lines below use."""
    body: list[str]
    stores: list[str] = field(default_factory=list)
    """Stores, which run once for each row if the phase is not a loop."""
    accumulators: list[Accumulator] = field(default_factory=list)


@dataclass
class Program:
    """A kernel for Inductor: rows of numbers, each of which may be reduced.

    ``xindex`` is the index of a row, below ``rows``. ``r0_index`` is the index within a reduced
    row, below ``columns``, which is None for a kernel without a reduction. A group computes
    ``group_rows`` rows, with ``lanes`` work items for each.
    """

    name: str
    parameters: list[Parameter]
    index: torch.dtype
    rows: str
    columns: str | None
    group_rows: int
    lanes: int
    variables: list[tuple[str, torch.dtype]]
    """Variables of a row that later phases use."""
    phases: list[Phase]


class Dialect(ABC):
    """A language like C.

    Expressions are the same in all dialects. Each dialect defines these names: ``schar``,
    ``uchar``, ``short``, ``ushort``, ``int``, ``uint``, ``long`` (64 bits), ``ulong``, ``float``,
    ``double``; the functions of C's ``math.h`` for both floating-point types; ``as_float(x)`` and
    the like, which reinterpret the bits of a value as another type of that size; ``INFINITY`` and
    ``NAN``.
    """

    code_format: str
    """The device's name for this code; see ``kernel_format``."""
    is_in_order = False
    """Whether work items run one after the other, and ``fault_index(index, size)`` and
    ``fault_division()`` make the stream fail. Otherwise Inductor writes no kernels for indexing and
    integer division, and calls operators."""
    is_philox = False
    """Whether the device draws the random numbers that random.h defines for ``random``, with
    ``random = "philox"`` in its support.toml. If so, kernels draw them with ``PHILOX`` of the
    prelude. Otherwise operators draw them."""
    prelude: str
    """The code before each kernel."""
    address_space = ""
    """The qualifier of pointers to global memory."""
    float_functions: Mapping[str, str] = {}
    """Other names for C functions with float arguments."""
    options: Sequence[str] = ()
    """Options for the compiler of the language."""
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
    """The types of values in computations."""
    memory_types: Mapping[torch.dtype, str] = {
        torch.bool: "uchar",
        torch.float16: "ushort",
        torch.bfloat16: "ushort",
    }
    """The types of elements in memory that differ from ``types``."""

    def memory_type(self, dtype: torch.dtype) -> str:
        """Return the type of an element in memory."""
        return self.memory_types.get(dtype) or self.types[dtype]

    def unpack(self, element: str, dtype: torch.dtype) -> str:
        """Return an expression for the value of an element in memory."""
        function = {torch.float16: "half_to_float", torch.bfloat16: "bfloat16_to_float"}.get(dtype)
        if function is not None:
            return f"{function}({element})"
        return f"({element} != 0)" if dtype is torch.bool else element

    def pack(self, value: str, dtype: torch.dtype) -> str:
        """Return an expression for the element in memory of a value."""
        function = {torch.float16: "float_to_half", torch.bfloat16: "float_to_bfloat16"}.get(dtype)
        return f"{function}({value})" if function else f"({self.memory_type(dtype)})({value})"

    def declared(self, parameter: Parameter) -> str:
        """Return the declaration of a function's parameter."""
        if parameter.dtype is None:
            return f"{parameter.kind} {parameter.name}"
        space = self.address_space + ("const " if parameter.kind == "read" else "")
        return f"{space}{self.memory_type(parameter.dtype)}* {parameter.name}"

    def wrapped(self, one: str, sign: str, other: str, dtype: torch.dtype) -> str:
        """Return a sum, a difference or a product. Integers wrap on overflow, as in PyTorch; in C
        the overflow of signed types is undefined."""
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
        """Return the complete source for the compiler, with the prelude."""
        return f"{self.prelude}\n{source}"

    def key(self) -> str:
        """Return a text that changes with the source of this class: code in PyTorch's caches is
        generated again when the text changes.
        """
        source = getattr(sys.modules[type(self).__module__], "__file__", None)
        digest = hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else ""
        return f"{type(self).__qualname__} {digest}"

    def is_usable(self) -> bool:
        """Return whether this machine has a compiler for the language."""
        return True

    @abstractmethod
    def shape(self, columns: int | None, is_outer: bool) -> tuple[int, int]:
        """Return the number of rows of a group and of work items for each row, both powers of 2.

        Args:
            columns: the expected number of columns; None without a reduction.
            is_outer: whether adjacent elements in memory belong to different rows.
        """

    def other_shapes(self, columns: int | None) -> list[tuple[int, int]]:
        """Return shapes that ``mode="max-autotune"`` compares with the one of :meth:`shape`."""
        return []

    @abstractmethod
    def write(self, program: Program) -> str:
        """Return the source of a kernel."""

    @abstractmethod
    def launch_items(self, program: Program) -> int:
        """Return the number of work items of a launched group."""


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
"""Conversions of the 16-bit floating-point types, in code that all dialects support."""

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
"""Computes a 32-bit number of Philox 4x32-10 by its position. WORD has at least 32 bits."""


def listed(lines: Sequence[str]) -> str:
    """Return the lines of a function's body, indented."""
    text, depth = "", 1
    for line in map(str.strip, lines):
        depth -= line.startswith("}")
        text += f"{'  ' * depth}{line}\n"
        depth += line.endswith("{")
    return text
