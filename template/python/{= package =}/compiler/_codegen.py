"""The interface for Inductor's code generation. Imported after its ``codegen.common``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    get_device_op_overrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.custom_graph_pass import CustomGraphModulePass, get_hash_for_files

from .. import _patches
from .._build import NAME
from ._compilers import OPERATORS, Compiler
from ._cpp_build import NAMESPACE
from ._leftovers import OperatorScheduling


class _Calls(DeviceOpOverrides):
    """Calls of this backend that Inductor puts into the Python that it writes."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"{name} = torch._dynamo.device_interface.get_interface_for_device('{NAME}').get_raw_stream"

    def set_device(self, device_idx: int) -> str:
        return f"torch.{NAME}.set_device({device_idx})"

    def synchronize(self) -> str:
        return f"torch.{NAME}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.{NAME}.device({device_idx})"

    def current_stream(self) -> str:
        return f"torch.{NAME}.current_stream()"

    def aten_device_type(self) -> str:
        return "at::kPrivateUse1"

    def cpp_aoti_device_guard(self) -> str:
        return f"{NAMESPACE}::DeviceGuard"

    def cpp_aoti_stream_guard(self) -> str:
        return f"{NAMESPACE}::DeviceGuard"

    def cpp_kernel_type(self) -> str:
        return f"{NAMESPACE}::Kernel"


class _Improvement(CustomGraphModulePass):
    """The compiler's pass over a graph; PyTorch's cache of compiled code uses it to distinguish compilers."""

    def __init__(self, improve: Callable[[Any], None] | None, identity: object) -> None:
        self._improve = improve
        self._identity = identity

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        """Improve the graph, if it is about this device: the pass is called for all."""
        if self._improve is not None and _patches.uses_device(gm, ()):
            self._improve(gm)

    def uuid(self) -> object:
        return self._identity


def register(compiler: Compiler = OPERATORS) -> None:
    """Make the device known to Inductor, with the classes that write its code from now on."""
    scheduling = OperatorScheduling if compiler.scheduling is None else compiler.scheduling()
    wrapper = PythonWrapperCodegen if compiler.wrapper is None else compiler.wrapper()
    # Beside the compiler, code depends on what this folder does and on what tracing is told.
    parts = map(
        inspect.getfile,
        (scheduling, wrapper, inspect.unwrap(compiler.improve or scheduling), _patches),
    )
    files = {*parts, *map(str, Path(__file__).parent.rglob("*.py"))}
    known = tuple(sorted(file for file in files if Path(file).is_file()))
    identity = get_hash_for_files(known, f"{NAME} {compiler.name} {compiler.target()}")
    register_backend_for_device(
        NAME,
        scheduling,
        wrapper,
        None if compiler.cpp_wrapper is None else compiler.cpp_wrapper(),
        device_custom_pass=_Improvement(compiler.improve, identity),
    )
    get_device_op_overrides("cpu")  # PyTorch 2.11 adds its own only where there are none yet
    register_device_op_overrides(NAME, _Calls())
