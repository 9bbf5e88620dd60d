"""OpenCL C 1.2."""

from __future__ import annotations

from collections.abc import Mapping

from ...devices import get_device_properties
from ._dialect import ELEMENTS, PHILOX, Dialect, Program, listed
from ._items import ItemWriter
from ._loops import LoopWriter

_PRELUDE = (
    """\
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef char schar;
#define as_schar as_char

// Without branches, where those of the language have some: polynomials of x * x up to 1, and of 1 / (1 + x / 2) beyond.
inline float erf_of_float(float x) {
  const float size = fabs(x), s = x * x;
  float near = -9.667043741501402e-06f;
  near = near * s + 0.00011265958892181516f;
  near = near * s - 0.0008484080317430198f;
  near = near * s + 0.005221031606197357f;
  near = near * s - 0.026865430176258087f;
  near = near * s + 0.11283782124519348f;
  near = near * s - 0.37612637877464294f;
  near = near * s + 1.128379225730896f;
  const float far = size > 4 ? 4 : size;
  const float t = 1 / (1 + far / 2);
  float rest = 0.12085243314504623f;
  rest = rest * t - 0.47652527689933777f;
  rest = rest * t + 0.5712651610374451f;
  rest = rest * t - 0.11020829528570175f;
  rest = rest * t + 0.3510303199291229f;
  rest = rest * t + 0.25875136256217957f;
  rest = rest * t + 0.28506162762641907f;
  rest = rest * t - 0.00016423637862317264f;
  return size < 1 ? near * x : copysign(1 - exp(-far * far) * rest, x);
}

"""
    + ELEMENTS
    + PHILOX.replace("WORD", "uint")
)


class OpenCLDialect(Dialect):
    """Parallel work items on a GPU, and loops on a CPU, whose compilers vectorize loops better."""

    code_format = "opencl-c"
    prelude = _PRELUDE
    address_space = "__global "
    is_philox = True
    float_functions: Mapping[str, str] = {"erf": "erf_of_float"}

    def __init__(self) -> None:
        self._items = ItemWriter(self)
        self._loops = LoopWriter(self, "#pragma clang loop vectorize(assume_safety)")

    def shape(self, columns: int | None, is_outer: bool) -> tuple[int, int]:
        return self._writer().shape(columns, is_outer)

    def other_shapes(self, columns: int | None) -> list[tuple[int, int]]:
        return self._writer().other_shapes(columns)

    def _writer(self) -> LoopWriter | ItemWriter:
        return self._loops if _is_cpu() else self._items

    def launch_items(self, program: Program) -> int:
        return 1 if _is_cpu() else program.group_rows * program.lanes

    def write(self, program: Program) -> str:
        if _is_cpu():
            names, lines = self._loops.names(program), self._loops.body(program, "get_group_id(0)")
        else:
            names, lines = "", self._items.body(program)
        parameters = ", ".join(map(self.declared, program.parameters))
        size = f"__attribute__((reqd_work_group_size({self.launch_items(program)}, 1, 1)))"
        return f"{names}__kernel {size}\nvoid {program.name}({parameters}) {{\n{listed(lines)}}}\n"


def _is_cpu() -> bool:
    return get_device_properties().sub_group_size == 1
