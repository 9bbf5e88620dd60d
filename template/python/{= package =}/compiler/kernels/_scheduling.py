"""Inductor's scheduling of kernels: writes their definitions and calls."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import config
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.simd import SIMDScheduling, pexpr
from torch._inductor.utils import get_fused_kernel_name, get_kernel_metadata
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from .._wrapper import Wrapper
from ._dialect import Dialect
from ._kernel import Argument, Kernel

_PLACEHOLDER = "KERNEL"


class KernelWrapper(Wrapper):
    """Writes definitions and launches of kernels."""

    def write_header(self) -> None:
        super().write_header()
        self.header.writeline(f"from {__package__}._launch import define_kernel")
        self.header.writeline(f"from {__package__}._tuning import define_tuned_kernel")

    def define_launch(self, name: str, source: str, kernel: Kernel, metadata: str) -> None:
        device = V.graph.get_current_device_or_throw()
        dialect, program = kernel.dialect, kernel.written
        head = f"{name!r}, {device.index}, {[each.kind for each in program.parameters]!r}"
        body = f"define_kernel({head}, {dialect.launch_items(program)}, r'''{source}''')"
        if kernel.others:
            programs = [program, *(replace(each, name=name) for each in kernel.others)]
            sources = [source, *map(dialect.write, programs[1:])]
            shapes = [
                f"({each.group_rows}, {dialect.launch_items(each)}, r'''{text}''')"
                for each, text in zip(programs, sources, strict=True)
            ]
            body = f"define_tuned_kernel({head}, [{', '.join(shapes)}])"
        self.define_kernel(name, body, metadata, gpu=False)

    def launch(self, name: str, groups: sympy.Expr, arguments: Sequence[Argument]) -> None:
        passed = [pexpr(groups)]
        for each in arguments:
            text = each.value if isinstance(each.value, str) else pexpr(each.value)
            passed.append(f"{text}.item()" if each.is_host_scalar else text)
        self.writeline(f"{name}({', '.join(passed)})")


class KernelScheduling(SIMDScheduling):
    """Inductor's scheduling with the kernels of a dialect."""

    kernel_type: Any = Kernel

    def get_backend_features(self, device: torch.device) -> OrderedSet[BackendFeature]:
        return OrderedSet([BackendFeature.INPLACE_BUFFERS])

    def define_kernel(self, src_code: str, node_schedule: Any, kernel: Kernel) -> str:
        wrapper: Any = V.graph.wrapper_code
        known = wrapper.src_to_kernel.get(src_code)
        if known is not None:
            return str(known)
        fused = get_fused_kernel_name(node_schedule, config.triton.descriptive_names)
        name = "_".join(["kernel", fused, wrapper.next_kernel_suffix()])
        wrapper.src_to_kernel[src_code] = name
        origins, detailed = get_kernel_metadata(node_schedule, wrapper)
        source = src_code.replace(_PLACEHOLDER, name)
        wrapper.define_launch(name, source, kernel, f"{origins}\n{detailed}")
        return name


@functools.cache
def scheduling_of(dialect: Dialect) -> type[KernelScheduling]:
    """Return the class that writes kernels in a dialect."""
    kernel = type("Kernel", (Kernel,), {"dialect": dialect})
    return type("KernelScheduling", (KernelScheduling,), {"kernel_type": kernel})
