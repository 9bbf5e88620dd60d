"""Kernels whose work items are loop iterations, for devices that run them one after the other.

The compiler vectorizes the loops. Values that a work item needs in a later phase are in an array.
"""

from __future__ import annotations

from ._dialect import Accumulator, Dialect, Phase, Program

_LANES = 64
_ROWS = 4096
"""The number of rows of a group without a reduction."""


class LoopWriter:
    """Writes the body of a function that is called once for each group."""

    def __init__(self, dialect: Dialect, independent: str) -> None:
        """Store the pragma for loops with independent iterations."""
        self._types = dialect.types
        self._independent = independent

    def shape(self, columns: int | None, is_outer: bool) -> tuple[int, int]:
        """Return the number of rows of a group and of work items for each row."""
        if columns is None:
            return _ROWS, 1
        return (_LANES, 1) if is_outer or columns < 8 else (1, _LANES)

    def other_shapes(self, columns: int | None) -> list[tuple[int, int]]:
        """Return other shapes that can be faster."""
        if columns is None:
            return [(_ROWS // 4, 1), (_ROWS * 4, 1)]
        return [(1, _LANES), (_LANES, 1), (1, _LANES // 4), (1, _LANES * 4)]

    def names(self, program: Program) -> str:
        """Return macros, for before the function, that name array elements like variables."""
        accumulators = (each for phase in program.phases for each in phase.accumulators)
        kept = {name: "item" for each in accumulators for name, _, _ in each.parts}
        kept |= {name: "row" for name, _ in program.variables}
        return "".join(f"#define {name} {name}_of[{place}]\n" for name, place in kept.items())

    def body(self, program: Program, group: str) -> list[str]:
        """Return the body of the function; ``group`` is the group's number."""
        index = self._types[program.index]
        size = program.group_rows
        frame = [
            f"const {index} first = ({index}){group} * {size};",
            f"const int rows = {program.rows} - first < {size} ? {program.rows} - first : {size};",
        ]
        for name, dtype in program.variables:
            frame.append(f"{self._types[dtype]} {name}_of[{size}];")
        for phase in program.phases:
            frame += self._phase(program, phase, index)
        return frame

    def _phase(self, program: Program, phase: Phase, index: str) -> list[str]:
        free = [] if phase.is_ordered else [self._independent]
        if program.columns is None:
            return self._rows(program, phase, index, free)
        is_wide = program.lanes > 1
        row = "0" if is_wide else "item"
        body = [
            f"const int row = {row};",
            f"const {index} xindex = first + row;",
        ]
        digits = [f"const {index} {each.name} = {each.text};" for each in phase.indices]
        written = [*digits, *phase.body, *phase.stores]
        if not phase.is_loop:
            return [*free, *_loop("item", "1" if is_wide else "rows", [*body, *written])]
        lines = []
        for accumulator in phase.accumulators:
            for name, dtype, first in accumulator.parts:
                size = program.group_rows * program.lanes
                lines.append(f"{self._types[dtype]} {name}_of[{size}];")
                lines += _loop("item", str(size), [f"{name}_of[item] = {first};"])
        body.append(f"const {index} r0_index = base + {'item' if is_wide else '0'};")
        left = f"{program.columns} - base"
        items = f"{left} < {program.lanes} ? {left} : {program.lanes}" if is_wide else "rows"
        inner = [f"const int items = {items};", *free, *_loop("item", "items", [*body, *written])]
        lines += _loop("base", program.columns, inner, index, str(program.lanes))
        for accumulator in phase.accumulators:
            lines += self._combine(program, accumulator)
        return lines

    def _rows(self, program: Program, phase: Phase, index: str, free: list[str]) -> list[str]:
        """Loop over rows without a reduction, in runs where only the last index changes.

        A run has no divisions and uses adjacent memory, so the compiler can vectorize it.
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
        *body,
        "}",
    ]
