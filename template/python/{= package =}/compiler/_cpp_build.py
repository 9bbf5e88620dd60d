"""Compiler and linker options for the C++ code that Inductor generates for this device."""

from __future__ import annotations

import functools
import importlib
import shutil
from pathlib import Path
from typing import Any

from torch._dynamo.device_interface import DeviceInterface
from torch._inductor import config

from .. import _C
from .._build import NAME

_PACKAGE = __package__.partition(".")[0]
NAMESPACE = f"{_PACKAGE}::aoti"
"""The C++ namespace of the classes that this code uses."""


OPTIONS = (
    {}
    if shutil.which("openssl")
    else {"aot_inductor.precompile_headers": False, "cpp_cache_precompile_headers": False}
)
"""Options of Inductor: it needs openssl to precompile headers, and fails without it."""


def device_options() -> tuple[list[str], ...]:
    """Return the options in the form of PyTorch's ``get_cpp_torch_device_options``: definitions,
    include folders, compiler flags, linker flags, library folders, libraries, other arguments.
    """
    cpp_extension: Any = importlib.import_module("torch.utils.cpp_extension")
    package = Path(_C.__file__).parent
    return (
        [],
        [str(package / "include"), *cpp_extension.include_paths()],
        [],
        [],
        [str(package / "lib"), *cpp_extension.library_paths()],
        [_PACKAGE, *(config.aot_inductor.custom_op_libs or [])],
        [],
    )


def install() -> None:
    """Register the options in PyTorch before 2.15; later releases query the device interface."""
    if hasattr(DeviceInterface, "get_cpp_device_options"):
        return
    module: Any = importlib.import_module("torch._inductor.cpp_builder")
    original = module.get_cpp_torch_device_options

    @functools.wraps(original)
    def get_cpp_torch_device_options(device_type: str, *arguments: Any, **keywords: Any) -> Any:
        if device_type.partition(":")[0] == NAME:
            return device_options()
        return original(device_type, *arguments, **keywords)

    module.get_cpp_torch_device_options = get_cpp_torch_device_options
