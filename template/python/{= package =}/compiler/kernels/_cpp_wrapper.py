"""The calls of a graph in C++: for AOTInductor, and for ``cpp_wrapper``.

The code calls operators through PyTorch's dispatcher, except matrix products: PyTorch's C functions
for operators support a fixed list of devices. Kernels are loaded from files next to the code.
"""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import ir
from torch._inductor.codegen import cpp_utils
from torch._inductor.codegen.cpp_utils import cexpr
from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
from torch._inductor.virtualized import V

from ..._build import NAME
from ..._private import keep
from ...kernels import kernel_code
from .._cpp_build import NAMESPACE
from .._wrapper import may_lie_otherwise
from ._cpp_graph import ATTENTION, ATTENTION_BACKWARD
from ._kernel import Argument, Kernel
from ._launch import kernel_cache

_NUMBERS = {"long": "int64_t", "float": "float", "double": "double"}
_SHIM = "aoti_torch_privateuse1_"
_PRODUCTS = {f"{name}_out" for name in ("mm", "addmm", "bmm", "baddbmm", "_int_mm", "_scaled_mm")}

# PyTorch 2.15 and later call DeviceOpOverrides instead.
getattr(cpp_utils, "DEVICE_TO_ATEN", {})[NAME] = "at::kPrivateUse1"


class CppWrapper(CppWrapperCpu):
    """Writes definitions and launches of kernels, and calls of operators."""

    def __init__(self) -> None:
        self.device = NAME
        super().__init__()
        self._kernels: dict[str, tuple[str, int]] = {}
        self._numbers = count()

    @staticmethod
    def create(*_: Any, **__: Any) -> CppWrapper:
        return CppWrapper()

    def codegen_model_constructor(self) -> None:
        for name in V.graph.constants:
            if V.graph.get_original_value_of_constant(name).device.type != NAME:
                original = V.graph.dynamo_flat_name_to_original_fqn.get(name, name)
                raise NotImplementedError(
                    f"{original}, a weight or a constant of the model, is on the CPU: move it to "
                    f"{NAME}, as AOTInductor supports weights of one device only"
                )
        super().codegen_model_constructor()

    def define_launch(self, name: str, source: str, kernel: Kernel, metadata: str) -> None:
        dialect, device = kernel.dialect, V.graph.get_current_device_or_throw()
        code, options = kernel_code(
            dialect.whole(source), name, dialect.options, device.index, kernel_cache()
        )
        file = kernel_cache() / f"{hashlib.sha256(code).hexdigest()}.{dialect.code_format}"
        keep(file, code)
        self.header.splice("\n".join(f"// {line.lstrip('# ')}" for line in metadata.splitlines()))
        holder, folder = name, "std::nullopt"
        if V.graph.aot_mode:
            self.additional_files.append(str(file))
            holder, folder = f"kernels.{name}", "this->cubin_dir_"
        else:
            self.header.writeline(f"static {NAMESPACE}::Kernel {name};")
        index = self.codegen_device_idx(device, str(device.index))
        texts = ", ".join(map(json.dumps, (str(file), options, name)))
        items = dialect.launch_items(kernel.written)
        self._kernels[name] = (f"{holder}.load({index}, {folder}, {texts})", items)

    def launch(self, name: str, groups: sympy.Expr, arguments: Sequence[Argument]) -> None:
        loaded, items = self._kernels[name]
        passed = ", ".join(map(self._passed, arguments))
        self.writeline(f"{loaded}.launch({cexpr(groups)}, {items}, {{{passed}}});")

    def _passed(self, argument: Argument) -> str:
        kind = argument.parameter.kind
        if kind in ("read", "written"):
            return f"{NAMESPACE}::{kind}({argument.value})"
        value = argument.value if isinstance(argument.value, str) else cexpr(argument.value)
        if argument.is_host_scalar:
            name = f"number_{next(self._numbers)}"
            self.codegen_tensor_item(V.graph.get_dtype(str(argument.value)), value, name)
            value = name
        return f"{NAMESPACE}::number({_NUMBERS[kind]}({value}))"

    def generate_fallback_kernel(self, node: ir.FallbackKernel) -> None:
        arguments = node.export_extern_kernel_node()
        # In PyTorch 2.15 and later, a result can be the operator's own buffer.
        written = getattr(node, "codegen_outputs", None)
        self.generate_fallback_kernel_with_runtime_lookup(
            node.get_name(),
            node.python_kernel_name,
            lambda: [*node.codegen_args(), *node.codegen_kwargs()],
            node.op_overload,
            arguments,
            written() if written else node.outputs or node.mutation_outputs,
        )

    def generate_fallback_kernel_with_runtime_lookup(
        self,
        buf_name: Any,
        python_kernel_name: Any,
        get_args: Any,
        op_overload: Any,
        raw_args: Any,
        outputs: Any,
    ) -> None:
        if V.graph.aot_mode and any(isinstance(each, torch.device) for each in raw_args):
            raise NotImplementedError(
                f"{NAME}: a package cannot call {op_overload} with a device, which PyTorch reads "
                "as CUDA there: pass its result in, or use an operator such as empty_like"
            )
        if not V.graph.aot_mode and isinstance(outputs, (list, tuple)):
            # PyTorch reads all results as tensors. Sizes are already known.
            outputs = [None if isinstance(each, (int, sympy.Expr)) else each for each in outputs]
        super().generate_fallback_kernel_with_runtime_lookup(
            buf_name, python_kernel_name, get_args, op_overload, raw_args, outputs
        )
        for result in _flat(outputs):
            kernel = result.inputs[0] if isinstance(result, ir.MultiOutput) else result
            is_made = isinstance(result, (ir.MultiOutput, ir.FallbackKernel))
            if is_made and may_lie_otherwise(result, kernel):
                strides = ", ".join(map(cexpr, result.get_stride()))
                self.writeline(f"{NAMESPACE}::as_traced({result.get_name()}, {{{strides}}});")

    def generate_return(self, output_refs: list[str]) -> None:
        super().generate_return(output_refs)
        if V.graph.is_const_graph:  # any stream may read the constants that it computed
            self.wrapper_call.writeline(f"AOTI_TORCH_ERROR_CODE_CHECK({_SHIM}wait());")

    @staticmethod
    def _compatible_with_stableivalue(op: torch._ops.OpOverload) -> bool:
        """Return False, as the other calls support device arguments and sizes among the results."""
        return False

    @staticmethod
    def _compatible_with_cpp_boxed_dispatch(op: torch._ops.OpOverload) -> bool:
        """Return whether the code calls the dispatcher instead of Python."""
        if op == ATTENTION_BACKWARD:  # its arguments include undefined tensors
            return False
        return op == ATTENTION or bool(CppWrapperCpu._compatible_with_cpp_boxed_dispatch(op))

    @staticmethod
    def get_c_shim_func_name(kernel: str, device: str) -> str:
        name: str = CppWrapperCpu.get_c_shim_func_name(kernel, device)
        return name.replace(f"aoti_torch_{NAME}_", _SHIM, 1)

    def generate_c_shim_extern_kernel_call(
        self, kernel: str, args: list[str], device: str, **keywords: Any
    ) -> None:
        name = self.get_c_shim_func_name(kernel, device)
        if name.startswith(_SHIM) and name.removeprefix(_SHIM) not in _PRODUCTS:
            raise NotImplementedError(
                f"{NAME}: code in C++ cannot call {kernel}: compile without AOTInductor and "
                "cpp_wrapper"
            )
        super().generate_c_shim_extern_kernel_call(kernel, args, device, **keywords)


def _flat(outputs: Any) -> Iterable[Any]:
    if isinstance(outputs, (list, tuple)):
        for each in outputs:
            yield from _flat(each)
    else:
        yield outputs
