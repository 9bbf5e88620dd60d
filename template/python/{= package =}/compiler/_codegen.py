"""Registration with Inductor's code generation. Imported after its ``codegen.common``."""

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

from .. import _C, _patches
from .._build import NAME
from ._compilers import OPERATORS, Compiler
from ._cpp_build import NAMESPACE
from ._leftovers import OperatorScheduling


class _Calls(DeviceOpOverrides):
    """Calls of this backend in the Python code that Inductor generates."""

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
    """The compiler's graph pass. Its uuid is part of the key of PyTorch's compile caches."""

    def __init__(self, improve: Callable[[Any], None] | None, identity: object) -> None:
        self._improve = improve
        self._identity = identity

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        """Improve the graph if it uses this device. Inductor calls the pass for all graphs."""
        if self._improve is not None and _patches.uses_device(gm, ()):
            self._improve(gm)

    def uuid(self) -> object:
        return self._identity


def register(compiler: Compiler = OPERATORS) -> None:
    """Register the device with Inductor, with the compiler's classes that write the code."""
    scheduling = OperatorScheduling if compiler.scheduling is None else compiler.scheduling()
    wrapper = PythonWrapperCodegen if compiler.wrapper is None else compiler.wrapper()
    # Generated code also depends on the files in this folder, on the headers that C++ code includes,
    # and on the patches for tracing.
    parts = map(
        inspect.getfile,
        (scheduling, wrapper, inspect.unwrap(compiler.improve or scheduling), _patches),
    )
    headers = Path(_C.__file__).with_name("include").rglob("*.h")
    files = {*parts, *map(str, Path(__file__).parent.rglob("*.py")), *map(str, headers)}
    known = tuple(sorted(file for file in files if Path(file).is_file()))
    identity = get_hash_for_files(known, f"{NAME} {compiler.name} {compiler.target()}")
    register_backend_for_device(
        NAME,
        scheduling,
        wrapper,
        None if compiler.cpp_wrapper is None else compiler.cpp_wrapper(),
        device_custom_pass=_Improvement(compiler.improve, identity),
    )
    get_device_op_overrides("cpu")  # PyTorch 2.11 registers its own only if none are registered
    register_device_op_overrides(NAME, _Calls())
