"""C++ for devices that take shared objects of the host, as the simulator does.

A group is one call of a function, so its work items are turns of loops, which the compiler
vectorizes: what a work item keeps between two phases is an element of an array.
"""

from __future__ import annotations

from ._dialect import ELEMENTS, Accumulator, Dialect, Parameter, Phase, Program, listed

_LANES = 64
_ROWS = 4096
"""Of a group that reduces nothing."""

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
"""Functions of one argument that glibc's libmvec has for vectors, from which version on."""

_PRELUDE = (
    """\
#include <cstring>
#include <stdexcept>
#include <string>

using schar = signed char;
using uchar = unsigned char;
using std::abs, std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::ceil,
    std::copysign, std::cos, std::cosh, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::fabs, std::floor,
    std::fma, std::fmod, std::hypot, std::lgamma, std::log, std::log10, std::log1p, std::log2, std::nextafter,
    std::pow, std::rint, std::signbit, std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;

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
[[noreturn, gnu::noinline]] static void fault_division() { throw std::domain_error("integer division by zero"); }

"""
    + ELEMENTS
)


def _vector_functions() -> str:
    """Declare what glibc declares under -ffast-math only."""
    lines = ["#if defined(__x86_64__) && defined(__GLIBC__)", 'extern "C" {']
    for (major, minor), names in _VECTORS.items():
        lines.append(f"#if __GLIBC_PREREQ({major}, {minor})")
        for name in names:
            for type_, suffix in (("float", "f"), ("double", "")):
                attribute = '__attribute__((simd("notinbranch")))'
                lines.append(f"{attribute} {type_} {name}{suffix}({type_}) noexcept;")
        lines.append("#endif")
    return "\n".join([*lines, "}", "#endif", ""])


class CppDialect(Dialect):
    """C++20 by GCC or Clang."""

    code_format = "elf-host"
    prelude = "#include <cmath>\n" + _vector_functions() + _PRELUDE
    options = ("-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
    is_in_order = True

    def shape(self, rows: int, columns: int | None, is_outer: bool) -> tuple[int, int]:
        if columns is None:
            return _ROWS, 1
        return (_LANES, 1) if is_outer or columns < 8 else (1, _LANES)

    def launch_items(self, program: Program) -> int:
        return 1

    def write(self, program: Program) -> str:
        index = self.types[program.index]
        frame = [
            f"const {index} first = ({index})group.index[0] * {program.group_rows};",
            f"const int rows = {program.rows} - first < {program.group_rows} ? {program.rows} - first"
            f" : {program.group_rows};",
        ]
        for name, dtype in program.variables:
            frame.append(f"{self.types[dtype]} {name}_of[{program.group_rows}];")
        for phase in program.phases:
            frame += self._phase(program, phase, index)
        parameters = ", ".join(["const Group& group", *map(self._parameter, program.parameters)])
        return f"void {program.name}({parameters}) {{\n{listed(frame)}}}\n"

    def _parameter(self, parameter: Parameter) -> str:
        if parameter.dtype is None:
            return f"{parameter.kind} {parameter.name}"
        const = "const " if parameter.kind == "read" else ""
        return f"{const}{self.memory_type(parameter.dtype)}* {parameter.name}"

    def _phase(self, program: Program, phase: Phase, index: str) -> list[str]:
        free = [] if phase.is_ordered else ["#pragma GCC ivdep"]
        if program.columns is None:
            return self._rows(program, phase, index, free)
        is_wide = program.lanes > 1
        row = "0" if is_wide else "item"
        body = [
            f"const int row = {row};",
            f"const {index} xindex = first + row;",
            *(f"{self.types[dtype]}& {name} = {name}_of[row];" for name, dtype in program.variables),
        ]
        digits = [f"const {index} {each.name} = {each.text};" for each in phase.indices]
        written = [*digits, *phase.body, *phase.stores]
        if not phase.is_loop:
            return [*free, *_loop("item", "1" if is_wide else "rows", [*body, *written])]
        lines = []
        for accumulator in phase.accumulators:
            for name, dtype, first in accumulator.parts:
                size = program.group_rows * program.lanes
                lines.append(f"{self.types[dtype]} {name}_of[{size}];")
                lines += _loop("item", str(size), [f"{name}_of[item] = {first};"])
                body.append(f"{self.types[dtype]}& {name} = {name}_of[item];")
        body.append(f"const {index} r0_index = base + {'item' if is_wide else '0'};")
        left = f"{program.columns} - base"
        items = f"{left} < {program.lanes} ? {left} : {program.lanes}" if is_wide else "rows"
        inner = [f"const int items = {items};", *free, *_loop("item", "items", [*body, *written])]
        lines += _loop("base", program.columns, inner, index, str(program.lanes))
        for accumulator in phase.accumulators:
            lines += self._combine(program, accumulator)
        return lines

    def _rows(self, program: Program, phase: Phase, index: str, free: list[str]) -> list[str]:
        """Go over rows of which none is reduced, in runs where only the last digit changes.

        Without divisions in it, and with neighbours in memory, the compiler can vectorize a run.
        """
        digits = phase.indices
        last = [each for each in digits if each.step == 1 and str(each.length) != program.rows]
        length = last[0].length if len(last) == 1 else None
        others = [each for each in digits if each not in last and each.step != 1]
        if not length or any(each.step is None or each.step % length for each in others):
            lines = [f"const {index} {each.name} = {each.text};" for each in digits]
            body = [f"const {index} xindex = first + item;", *lines, *phase.body, *phase.stores]
            return [*free, *_loop("item", "rows", body)]
        whole = [each for each in digits if each.step == 1 and each not in last]
        inner = [
            f"const {index} {last[0].name} = begin + item;",
            *(f"const {index} {each.name} = xindex + item;" for each in whole),
            *phase.body,
            *phase.stores,
        ]
        run = [
            f"const {index} xindex = first + start, begin = xindex % {length};",
            *(f"const {index} {each.name} = {each.text};" for each in others),
            f"run = rows - start < {length} - begin ? rows - start : {length} - begin;",
            *free,
            *_loop("item", "run", inner),
        ]
        return ["int run;", *_loop("start", "rows", run, step="run")]

    def _combine(self, program: Program, accumulator: Accumulator) -> list[str]:
        names = [name for name, _, _ in accumulator.parts]
        lines = []
        if program.lanes > 1:
            left = {f"a{place}": f"{name}_of[item]" for place, name in enumerate(names)}
            right = {f"b{place}": f"{name}_of[item + step]" for place, name in enumerate(names)}
            lines += [
                f"for (int step = {program.lanes // 2}; step > 0; step /= 2) {{",
                *_loop("item", "step", [accumulator.merge.format(**left, **right)]),
                "}",
            ]
        rows = "1" if program.lanes > 1 else "rows"
        results = [(result, names[place]) for result, place in accumulator.results]
        assigned = [f"{result}_of[item] = {name}_of[item];" for result, name in results]
        return lines + _loop("item", rows, assigned)


def _loop(name: str, end: str, body: list[str], type_: str = "int", step: str = "1") -> list[str]:
    return [
        f"for ({type_} {name} = 0; {name} < {end}; {name} += {step}) {{",
        *(f"  {line}" for line in body),
        "}",
    ]
