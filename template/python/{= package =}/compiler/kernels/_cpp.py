"""C++ for devices that load shared objects of the host, like the simulator."""

from __future__ import annotations

from ..._host_kernels import has_compiler
from ._dialect import ELEMENTS, FUNCTIONS, PHILOX, Dialect, Program, listed
from ._loops import LoopWriter

_VECTORS = {
    (2, 22): ["cos", "sin", "log", "exp"],
    (2, 35): [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cosh",
        "erf",
        "erfc",
        "exp2",
        "expm1",
        "log10",
        "log1p",
        "log2",
        "sinh",
        "tan",
        "tanh",
    ],
}
"""Functions of one argument in glibc's libmvec, by the first glibc version that has them."""

_PRELUDE = (
    """\
#include <cstring>
#include <stdexcept>
#include <string>

using schar = signed char;
using uchar = unsigned char;
using std::abs, std::fabs, std::fmod, std::ldexp, std::pow, std::rint, std::signbit;

template <class To, class From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}
#define as_schar bits_as<schar>
#define as_uchar bits_as<uchar>
#define as_short bits_as<short>
#define as_ushort bits_as<ushort>
#define as_int bits_as<int>
#define as_uint bits_as<uint>
#define as_long bits_as<long>
#define as_ulong bits_as<ulong>
#define as_float bits_as<float>
#define as_double bits_as<double>

[[noreturn, gnu::noinline]] static void fault_index(long index, long size) {
  throw std::out_of_range("index " + std::to_string(index) + " is out of bounds for a dimension of size " +
                          std::to_string(size));
}
[[noreturn, gnu::noinline]] static void fault_division() { throw std::domain_error("ZeroDivisionError"); }

"""
    + ELEMENTS
    + PHILOX.replace("WORD", "ulong")  # the width of the products vectorizes better
)


def _vector_functions() -> str:
    """Declare the vector functions, which glibc declares only with -ffast-math."""
    lines = ["#if defined(__x86_64__) && defined(__GLIBC__)", 'extern "C" {']
    for (major, minor), names in _VECTORS.items():
        lines.append(f"#if __GLIBC_PREREQ({major}, {minor})")
        for name in names:
            for type_, suffix in (("float", "f"), ("double", "")):
                attribute = '__attribute__((simd("notinbranch")))'
                lines.append(f"{attribute} {type_} {name}{suffix}({type_}) noexcept;")
        lines.append("#endif")
    return "\n".join([*lines, "}", "#endif", ""])


def _names() -> str:
    return "".join(f"using std::{name};\n" for name in FUNCTIONS.split())


class CppDialect(Dialect):
    """C++20 by GCC or Clang."""

    code_format = "elf-host"
    prelude = "#include <cmath>\n" + _vector_functions() + _names() + _PRELUDE
    options = ("-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
    is_in_order = True
    is_philox = True

    def __init__(self) -> None:
        self._writer = LoopWriter(self, "#pragma GCC ivdep")

    def is_usable(self) -> bool:
        return has_compiler()

    def shape(self, columns: int | None, is_outer: bool) -> tuple[int, int]:
        return self._writer.shape(columns, is_outer)

    def other_shapes(self, columns: int | None) -> list[tuple[int, int]]:
        return self._writer.other_shapes(columns)

    def launch_items(self, program: Program) -> int:
        return 1

    def write(self, program: Program) -> str:
        parameters = ", ".join(["const Group& group", *map(self.declared, program.parameters)])
        body = listed(self._writer.body(program, "group.index[0]"))
        return f"{self._writer.names(program)}void {program.name}({parameters}) {{\n{body}}}\n"
