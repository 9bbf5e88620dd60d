"""``torch.compile`` for this device.

The device is registered with Dynamo and Inductor when they are imported, at the first compilation.
A :class:`Compiler` turns a graph into calls. One writes kernels in the device's language, one calls
this backend's operators, and :func:`register_compiler` adds others.
"""

from __future__ import annotations

import sys

from .._imports import when_imported
from .._patching import is_wanted
from ._compilers import Compiler, compilers, find_compiler, register_compiler
from .kernels import Dialect, register_dialect

__all__ = [
    "Compiler",
    "Dialect",
    "compilers",
    "find_compiler",
    "register_compiler",
    "register_dialect",
]


PATCHES = ("checkpoints", "compilers", "flex_attention", "reinplacing")


def setup() -> None:
    """Register the functions to call when PyTorch's modules are imported."""
    when_imported("torch._dynamo.device_interface", _register_interface)
    when_imported("torch._dynamo.trace_rules", _leave_package_untraced)
    if is_wanted("checkpoints"):
        when_imported("torch._prims.rng_prims", _support_checkpoints)
    if is_wanted("compilers"):
        when_imported("torch._inductor.compile_fx", _register_compilers)
    if is_wanted("flex_attention"):
        when_imported("torch.nn.attention.flex_attention", _support_flex_attention)


def _register_interface() -> None:
    from . import _interface

    _interface.register()


def _leave_package_untraced() -> None:
    """Make Dynamo skip this package's functions: they call C++ functions, which it warns about."""
    from torch._dynamo import trace_rules

    package = __name__.rpartition(".")[0]
    for name, module in tuple(sys.modules.items()):
        is_python = str(getattr(module, "__file__", None)).endswith(".py")
        if is_python and name.startswith(f"{package}.") and not name.startswith(__name__):
            trace_rules.add(name)


def _register_compilers() -> None:
    from . import _codegen, _inductor

    _codegen.register()
    _inductor.install()


def _support_checkpoints() -> None:
    from . import _checkpoint

    _checkpoint.install()


def _support_flex_attention() -> None:
    from . import _flex_attention

    _flex_attention.install()
