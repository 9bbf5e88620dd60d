"""Kernels whose work items run in parallel, as on a GPU: OpenCL C.

Each work item has its own variables. The work items of a row reduce them in shared memory.
"""

from __future__ import annotations

from ._dialect import Accumulator, Dialect, Phase, Program

_ITEMS = 128
"""The number of work items of a group, a power of 2."""


class ItemWriter:
    """Writes the body of a function that is called once for each work item."""

    def __init__(self, dialect: Dialect) -> None:
        self._types = dialect.types

    def shape(self, columns: int | None, is_outer: bool) -> tuple[int, int]:
        """Return the number of rows of a group and of work items for each row."""
        if columns is None or is_outer or columns < 8:
            return _ITEMS, 1
        lanes = 8
        while lanes < min(columns, _ITEMS):
            lanes *= 2
        return 1, lanes

    def other_shapes(self, columns: int | None) -> list[tuple[int, int]]:
        """Return other shapes that can be faster."""
        rows = [(_ITEMS // 2, 1), (_ITEMS, 1), (_ITEMS * 2, 1)]
        return rows if columns is None else [*rows, *((1, lanes) for lanes in (32, 64, 128, 256))]

    def body(self, program: Program) -> list[str]:
        """Return the body of the function."""
        index = self._types[program.index]
        own = "" if program.lanes > 1 else f" * {program.group_rows} + ({index})item"
        frame = [
            "const uint item = (uint)get_local_id(0);",
            f"const {index} xindex = ({index})get_group_id(0){own};",
            f"const bool is_row = xindex < {program.rows};",
            *(f"{self._types[dtype]} {name};" for name, dtype in program.variables),
        ]
        if program.lanes > 1:
            accumulators = (each for phase in program.phases for each in phase.accumulators)
            for name, dtype, _ in (part for each in accumulators for part in each.parts):
                frame.append(f"__local {self._types[dtype]} {name}_of[{program.lanes}];")
        return [
            *frame,
            *(line for each in program.phases for line in self._phase(program, each, index)),
        ]

    def _phase(self, program: Program, phase: Phase, index: str) -> list[str]:
        body = [
            *(f"const {index} {each.name} = {each.text};" for each in phase.indices),
            *phase.body,
        ]
        if not phase.is_loop:
            stores = phase.stores
            if stores and program.lanes > 1:
                stores = ["if (item == 0) {", *stores, "}"]
            lines = ["if (is_row) {", *body, *stores, "}"]
            if program.lanes > 1 and stores:
                lines.append("barrier(CLK_GLOBAL_MEM_FENCE);")
            return lines
        parts = [part for each in phase.accumulators for part in each.parts]
        return [
            *(f"{self._types[dtype]} {name} = {first};" for name, dtype, first in parts),
            f"for ({index} base = 0; base < {program.columns}; base += {program.lanes}) {{",
            f"const {index} r0_index = base" + (f" + ({index})item;" if program.lanes > 1 else ";"),
            f"  if (is_row && r0_index < {program.columns}) {{",
            *body,
            *phase.stores,
            "}",
            "}",
            *(line for each in phase.accumulators for line in self._combine(program, each)),
        ]

    def _combine(self, program: Program, accumulator: Accumulator) -> list[str]:
        names = [name for name, _, _ in accumulator.parts]
        results = [(result, names[place]) for result, place in accumulator.results]
        if program.lanes == 1:
            return [f"{result} = {name};" for result, name in results]
        left = {f"a{place}": f"{name}_of[item]" for place, name in enumerate(names)}
        right = {f"b{place}": f"{name}_of[item + step]" for place, name in enumerate(names)}
        fence = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
        return [
            *(f"{name}_of[item] = {name};" for name in names),
            fence,
            f"for (uint step = {program.lanes // 2}; step > 0; step /= 2) {{",
            f"  if (item < step) {{ {accumulator.merge.format(**left, **right)} }}",
            f"  {fence}",
            "}",
            *(f"{result} = {name}_of[0];" for result, name in results),
            fence,
        ]
