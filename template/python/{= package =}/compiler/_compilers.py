"""The registered compilers, and the selection of one."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .._build import ENV_PREFIX, NAME
from .._compat import release
from ..devices import dtype_support, get_device_properties
from ..kernels import kernel_format

OLDEST = (2, 13)
"""The oldest PyTorch release whose Inductor supports the kernels."""
VARIABLE = f"{ENV_PREFIX}_COMPILER"
"""The environment variable that names the compiler to use."""


@dataclass(frozen=True)
class Compiler:
    """Compiles a graph of ATen operators. Register your own with :func:`register_compiler`.

    Inductor has already traced the graph, split it into a forward and a backward pass and improved
    it. A compiler compiles the whole remaining graph (``compile``), or generates the code of
    Inductor's kernels (``scheduling``, as for Triton), or only has ``options``.
    """

    name: str
    """Its name in the environment variable."""
    usable: Callable[[], bool] = field(default=lambda: True)
    """Whether the device and the machine support it. Called at each compilation."""
    why_not: Callable[[], str] = field(default=lambda: "it cannot be used on this device")
    """Returns the reason if it is not usable, for the error if a user selected it."""
    target: Callable[[], str] = field(default=lambda: "")
    """Returns a cache key that distinguishes devices and drivers."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of ``torch._inductor.config``. Options that the PyTorch release does not have are
    ignored. Options of ``torch.compile`` take precedence."""
    improve: Callable[[Any], None] | None = None
    """Changes the ``torch.fx.GraphModule`` of each pass in place, after Inductor's own passes."""
    scheduling: Callable[[], type[Any]] | None = None
    """Returns the subclass of ``torch._inductor.scheduler.BaseScheduling`` that writes kernels."""
    wrapper: Callable[[], type[Any]] | None = None
    """Returns the subclass of ``PythonWrapperCodegen`` that writes the calls of the kernels."""
    cpp_wrapper: Callable[[], type[Any]] | None = None
    """Returns the subclass of ``CppWrapperCpu`` that writes the calls in C++, for ``cpp_wrapper``
    and AOTInductor."""
    compile: Callable[..., Callable[..., Any] | None] | None = None
    """Called with a ``torch.fx.GraphModule`` of ATen operators and the list of its example inputs,
    which are fake tensors. The graph has no mutation except ``copy_`` to inputs at its end. Returns
    a function of those inputs that returns the list of outputs, or None to let Inductor compile."""


_compilers: list[Compiler] = []


def register_compiler(compiler: Compiler) -> None:
    """Register a compiler. It takes precedence over the compilers registered before.

    Raises:
        ValueError: a compiler of that name exists.
    """
    if any(compiler.name == other.name for other in _compilers):
        raise ValueError(
            f"there is a compiler named {compiler.name!r} already: choose another name"
        )
    _compilers.insert(0, compiler)


def find_compiler(name: str) -> Compiler:
    """Return the compiler of that name. ``dataclasses.replace`` derives another compiler from it.

    Raises:
        ValueError: no compiler has that name.
    """
    for known in _compilers:
        if known.name == name:
            return known
    raise ValueError(f"no compiler is named {name!r}; there are {', '.join(compilers())}")


def compilers() -> list[str]:
    """Return the names of all compilers in the order of preference."""
    return [compiler.name for compiler in _compilers]


def current() -> Compiler:
    """Return the compiler that the environment variable names, else the first usable compiler.

    Raises:
        ValueError: no compiler has the name in the variable.
        RuntimeError: the compiler in the variable is not usable.
    """
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return next(known for known in _compilers if known.usable())
    chosen = find_compiler(wanted)
    if not chosen.usable():
        raise RuntimeError(
            f"{VARIABLE}={wanted}: {chosen.why_not()}; unset the variable to select another one"
        )
    return chosen


def _leave_views(graph: Any) -> None:
    from ._operators import leave_views

    leave_views(graph)


def _operator_wrapper() -> type[Any]:
    from ._operators import OperatorWrapper

    return OperatorWrapper


def _kernels_problem() -> str | None:
    from .kernels import dialect_of

    try:
        dialect = dialect_of()
    except NotImplementedError as error:
        return str(error)
    if not dialect.is_usable():
        return f"this machine has no compiler for {type(dialect).__name__}"
    if release() < OLDEST:
        _warn_once()
        return f"the kernels need PyTorch {'.'.join(map(str, OLDEST))} or later"
    return None


@functools.cache
def _warn_once() -> None:
    logging.getLogger(__name__).warning(
        "torch.compile calls operators of %s: kernels in the device's language need PyTorch %s or "
        "later",
        NAME,
        ".".join(map(str, OLDEST)),
    )


def _device_key() -> str:
    """Return what generated code depends on: the device, and the dtypes that this build computes."""
    properties = get_device_properties()
    dtypes = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
    computed = sorted(str(each) for each in dtypes if dtype_support(each) == "supported")
    return " ".join((properties.name, properties.architecture, *computed))


def _target() -> str:
    from .kernels import dialect_of

    return f"{kernel_format()} {dialect_of().key()} {_device_key()}"


def _kernel_scheduling() -> type[Any]:
    from .kernels import dialect_of
    from .kernels._scheduling import scheduling_of

    return scheduling_of(dialect_of())


def _kernel_wrapper() -> type[Any]:
    from .kernels._scheduling import KernelWrapper

    return KernelWrapper


def _kernel_cpp_wrapper() -> type[Any]:
    from .kernels._cpp_wrapper import CppWrapper

    return CppWrapper


def _triton_problem() -> str | None:
    from ._triton import find_problem

    return find_problem()


def _triton_target() -> str:
    from ._triton import identity

    return f"{identity()} {_device_key()}"


def _triton_scheduling() -> type[Any]:
    from torch._inductor.codegen.triton import TritonScheduling

    return TritonScheduling


def _triton_wrapper() -> type[Any]:
    from ._triton_wrapper import TritonWrapper

    return TritonWrapper


def _leave_operators(graph: Any) -> None:
    from .kernels._operators import leave_operators

    leave_operators(graph)


_DRAWS = {"fallback_random": True}
if release() < (2, 12):
    # In these releases the pass reorders random operators, which then draw other numbers.
    _DRAWS["reorder_for_locality"] = False

OPERATORS = Compiler(
    "operators",
    # Inductor decomposes nothing, and calls this backend's operator for each node.
    # Reinplacing creates operators that only Inductor's own kernels support.
    options={
        "fallback_by_default": True,
        "selective_decompose": True,
        **_DRAWS,
        "disabled_passes": "reinplace_inplaceable_ops",
        # The wrapper copies results whose strides differ from the traced ones.
        "size_asserts": False,
        "alignment_asserts": False,
    },
    improve=_leave_views,
    wrapper=_operator_wrapper,
)
KERNELS = Compiler(
    "kernels",
    usable=lambda: _kernels_problem() is None,
    why_not=lambda: str(_kernels_problem()),
    target=_target,
    options={
        **_DRAWS,
        "online_softmax": False,
        "triton.max_tiles": 1,
        "triton.prefer_nd_tiling": False,
        "triton.mix_order_reduction": False,
        "loop_ordering_after_fusion": False,
        "size_asserts": False,
        "alignment_asserts": False,
    },
    improve=_leave_operators,
    scheduling=_kernel_scheduling,
    wrapper=_kernel_wrapper,
    cpp_wrapper=_kernel_cpp_wrapper,
)
TRITON = Compiler(
    "triton",
    usable=lambda: _triton_problem() is None,
    why_not=lambda: str(_triton_problem()),
    target=_triton_target,
    options={**_DRAWS, "size_asserts": False, "alignment_asserts": False},
    scheduling=_triton_scheduling,
    wrapper=_triton_wrapper,
)
# Every device can use OPERATORS, so a compiler after it is only selected by name.
_compilers.extend((KERNELS, OPERATORS, TRITON))
