"""Inductor's C++ kernels on device memory, for devices whose memory the host may use.

A kernel runs on a thread of the host's when its turn in the stream has come, so it is in order with
the device's own work, and the thread that launches it does not wait.
"""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Sequence
from typing import Any

from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.virtualized import V

from .. import _C
from .._build import NAME
from ._wrapper import Wrapper

_MARK = f"// launched on {NAME}\n"
"""Begins the source of each kernel for this device: one graph can have kernels for the CPU too."""
_DEFINITION = re.compile(r"async_compile\.cpp_pybinding\((\[.*?\]), r?'''(.*)'''\)\s*", re.DOTALL)
_LAUNCH = "launch_host_kernel"


class HostScheduling(CppScheduling):
    """Inductor's own, whose kernels are marked."""

    def define_kernel(self, src_code: str, *arguments: Any, **keywords: Any) -> str:
        name: str = super().define_kernel(_MARK + src_code, *arguments, **keywords)
        return name


class HostWrapper(Wrapper):
    """Writes definitions and calls of kernels that are launched on a stream."""

    def write_header(self) -> None:
        super().write_header()
        self.header.writeline(f"from torch.{NAME}.compiler._host import {_LAUNCH}")

    def define_kernel(
        self, kernel_name: str, kernel_body: str, *arguments: Any, **keywords: Any
    ) -> None:
        definition = _DEFINITION.fullmatch(kernel_body)
        if definition is not None and _MARK in kernel_body:
            types, source = ast.literal_eval(definition[1]), definition[2]
            kernel_body = f"async_compile.cpp(r'''{with_entry(source, types)}''')"
        super().define_kernel(kernel_name, kernel_body, *arguments, **keywords)

    def _generate_kernel_call_helper(
        self, kernel_name: str, call_args: Sequence[str], *, device: Any = None, **keywords: Any
    ) -> None:
        device = device or V.graph.get_current_device_or_throw()
        if device.type != NAME:
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **keywords)
            return
        listed = "".join(f"{argument}, " for argument in call_args)
        self.writeline(f"{_LAUNCH}({kernel_name}, {device.index}, ({listed}))")


def with_entry(source: str, types: Sequence[str]) -> str:
    """Return the source of a kernel with one parameter, an array of what it took before.

    Args:
        source: C++ with one function named ``kernel``.
        types: the types of its parameters, in order.
    """
    renamed = re.sub(
        r'extern "C"(.*?)\bkernel\(', r"static inline \1 compute(", source, flags=re.DOTALL
    )
    passed = ", ".join(_from_slot(type_, slot) for slot, type_ in enumerate(types))
    return (
        f'{renamed}\nextern "C" void kernel(const int64_t* slots)\n{{\n    compute({passed});\n}}\n'
    )


def _from_slot(type_: str, slot: int) -> str:
    if "*" in type_:
        return f"reinterpret_cast<{type_}>(slots[{slot}])"
    if "int" in type_:
        return f"static_cast<{type_}>(slots[{slot}])"
    return f"static_cast<{type_}>(*reinterpret_cast<const double*>(&slots[{slot}]))"


def launch_host_kernel(kernel: Any, device: int, arguments: tuple[Any, ...]) -> None:
    """Enqueue a compiled kernel on the current stream of ``device``."""
    _C.launch_host_kernel(ctypes.cast(kernel, ctypes.c_void_p).value, device, arguments)
