"""The route of a call: kernels of this backend, PyTorch's composites, or the CPU."""

from __future__ import annotations

from typing import Any

import torch
from support import names
from torch.utils._python_dispatch import TorchDispatchMode

NATIVE, COMPOSITE, FALLBACK, UNSUPPORTED = "native", "composite", "fallback", "unsupported"

# Operators that any call may use besides its own: for allocation, layout and copies.
_PLUMBING = set(
    names(
        """
    _to_copy alias clone copy_ detach empty empty_like empty_strided lift_fresh resize_
    """
    )
)


class Recorder(TorchDispatchMode):
    """Lists the operators that reach a backend, below autograd and autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[torch._ops.OpOverload] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.operators.append(func)
        return func(*args, **(kwargs or {}))

    def is_random(self) -> bool:
        """Whether the result depends on a generator."""
        return any(torch.Tag.nondeterministic_seeded in func.tags for func in self.operators)


def has_kernel(func: torch._ops.OpOverload) -> bool:
    """Whether the backend registered a kernel for this overload."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "PrivateUse1")


def draws(name: str) -> bool:
    """Whether an overload, as "aten::normal_", is random: its kernel belongs to a feature."""
    packet, _, overload = name.removeprefix("aten::").partition(".")
    func = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return torch.Tag.nondeterministic_seeded in func.tags


def computed_overloads() -> list[str]:
    """Return the overloads of aten that have a kernel of the CPU and are no composites."""
    composites = (
        "CompositeImplicitAutograd",
        "CompositeExplicitAutograd",
        "CompositeExplicitAutogradNonFunctional",
    )
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return [
        name
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and has_kernel(name, "CPU")
        and not any(has_kernel(name, key) for key in composites)
    ]


def native_overloads() -> list[str]:
    """Return the computed overloads that have a kernel of this backend."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return [name for name in computed_overloads() if has_kernel(name, "PrivateUse1")]


def route(recorder: Recorder, fallbacks: list[str], *, several: bool = False) -> str:
    """Name the route of a recorded call.

    Native: one operator with a kernel of this backend, or with ``several`` any number of them.
    Composite: PyTorch calls other operators.
    """
    if fallbacks:
        return FALLBACK
    work = [
        func
        for func in recorder.operators
        if not func.is_view and func._schema.name.removeprefix("aten::") not in _PLUMBING
    ]
    if not all(map(has_kernel, work)):
        return COMPOSITE
    return NATIVE if several or len(work) <= 1 else COMPOSITE
