"""OpenCL C 1.2."""

from __future__ import annotations

from ._dialect import ELEMENTS, Accumulator, Dialect, Parameter, Phase, Program, listed

_ITEMS = 128
_LANES = 64

_PRELUDE = (
    """\
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char schar;
#define as_schar as_char

"""
    + ELEMENTS
)


class OpenCLDialect(Dialect):
    """Each work item has its own variables; those of a row add up in local memory."""

    code_format = "opencl-c"
    prelude = _PRELUDE

    def shape(self, rows: int, columns: int | None, is_outer: bool) -> tuple[int, int]:
        if columns is None or is_outer or columns < 8:
            return _ITEMS, 1
        lanes = 8
        while lanes < min(columns, _LANES):
            lanes *= 2
        return _ITEMS // lanes, lanes

    def launch_items(self, program: Program) -> int:
        return program.group_rows * program.lanes

    def write(self, program: Program) -> str:
        index = self.types[program.index]
        items = self.launch_items(program)
        frame = [
            "const uint item = (uint)get_local_id(0);",
            f"const uint lane = item % {program.lanes};",
            f"const {index} xindex = ({index})get_group_id(0) * {program.group_rows} +"
            f" ({index})(item / {program.lanes});",
            f"const bool is_row = xindex < {program.rows};",
            *(f"{self.types[dtype]} {name};" for name, dtype in program.variables),
        ]
        if program.lanes > 1:
            for accumulator in (each for phase in program.phases for each in phase.accumulators):
                for name, dtype, _ in accumulator.parts:
                    frame.append(f"__local {self.types[dtype]} {name}_of[{items}];")
        for phase in program.phases:
            frame += self._phase(program, phase, index)
        parameters = ", ".join(map(self._parameter, program.parameters))
        attribute = f"__attribute__((reqd_work_group_size({items}, 1, 1)))"
        return f"__kernel {attribute}\nvoid {program.name}({parameters}) {{\n{listed(frame)}}}\n"

    def _parameter(self, parameter: Parameter) -> str:
        if parameter.dtype is None:
            return f"{parameter.kind} {parameter.name}"
        const = "const " if parameter.kind == "read" else ""
        return f"__global {const}{self.memory_type(parameter.dtype)}* {parameter.name}"

    def _phase(self, program: Program, phase: Phase, index: str) -> list[str]:
        body = [*(f"const {index} {each.name} = {each.text};" for each in phase.indices), *phase.body]
        if not phase.is_loop:
            stores = phase.stores
            if stores and program.lanes > 1:
                stores = ["if (lane == 0) {", *stores, "}"]
            lines = ["if (is_row) {", *body, *stores, "}"]
            if program.lanes > 1 and stores:
                lines.append("barrier(CLK_GLOBAL_MEM_FENCE);")
            return lines
        parts = [part for each in phase.accumulators for part in each.parts]
        return [
            *(f"{self.types[dtype]} {name} = {first};" for name, dtype, first in parts),
            f"for ({index} base = 0; base < {program.columns}; base += {program.lanes}) {{",
            f"  const {index} r0_index = base + ({index})lane;",
            f"  if (is_row && r0_index < {program.columns}) {{",
            *body,
            *phase.stores,
            "  }",
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
            f"  if (lane < step) {{ {accumulator.merge.format(**left, **right)} }}",
            f"  {fence}",
            "}",
            *(f"{result} = {name}_of[item - lane];" for result, name in results),
            fence,
        ]
