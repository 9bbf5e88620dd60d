"""A valid call of each native overload, from PyTorch's samples or argument_bases.py."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from backend import DEVICE
from conformance.argument_bases import CALLS
from conformance.samples import Arguments, Mover, map_values, samples, tensors_of
from torch.testing._internal import common_methods_invocations as tables
from torch.utils._python_dispatch import TorchDispatchMode

SEVERAL = 3
"""The number of samples, the first ones, that are recorded for an operator and dtype."""

DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
"""Samples are recorded in the first two of these that an operator supports."""


@dataclass(frozen=True)
class Call:
    """An overload, and its arguments by their names, on the CPU."""

    name: str
    arguments: dict[str, Any]

    @property
    def overload(self) -> torch._ops.OpOverload:
        return find(self.name)

    def on(self, device: str) -> dict[str, Any]:
        """Return the arguments on a device, copied."""
        moved: dict[str, Any] = map_values(map_values(self.arguments, Mover(device)), detached)
        return moved


def detached(value: Any) -> Any:
    """Return a tensor without gradients, and anything else as it is."""
    return value.detach() if isinstance(value, torch.Tensor) else value


def find(name: str) -> torch._ops.OpOverload:
    """Return the overload of a name such as ``aten::add.Tensor``."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found: torch._ops.OpOverload = getattr(
        getattr(getattr(torch.ops, namespace), packet), overload or "default"
    )
    return found


def run(overload: torch._ops.OpOverload, arguments: dict[str, Any]) -> Any:
    """Call an overload with arguments by their names."""
    given = [item for item in overload._schema.arguments if item.name in arguments]
    positional = [arguments[item.name] for item in given if not item.kwarg_only]
    return overload(
        *positional, **{item.name: arguments[item.name] for item in given if item.kwarg_only}
    )


def native_overloads() -> list[str]:
    """Return the overloads that have a kernel of this backend, without collectives."""
    return sorted(
        name
        for name in torch._C._dispatch_get_all_op_names()
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")
        and not name.startswith(("c10d::", "fsdp::", "_c10d"))
    )


class Recorder(TorchDispatchMode):
    """Records the first call of each native overload, with the arguments before the call."""

    def __init__(self, calls: dict[str, Call], wanted: set[str]) -> None:
        super().__init__()
        self.calls = calls
        self.wanted = wanted

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = func.name()
        if name in self.wanted and name not in self.calls:
            call = named(name, *args, kwargs or {})
            with suppress(Exception):  # sparse and nested tensors are not copied
                self.calls[name] = Call(name, call.on("cpu"))
        return func(*args, **(kwargs or {}))


def every_operator() -> list[Any]:
    """Return PyTorch's OpInfos, including those of ``torch._foreach_*``."""
    kinds = ("unary", "binary", "pointwise", "reduce", "other")
    return [
        *tables.op_db,
        *itertools.chain(*(getattr(tables, f"foreach_{kind}_op_db") for kind in kinds)),
    ]


def use(op: Any, dtype: torch.dtype) -> Iterator[Callable[[], Any]]:
    """Yield programs that call an operator, its gradient and its other variants."""
    differentiable = dtype in op.supported_backward_dtypes("cpu")
    for index, sample in enumerate(
        itertools.islice(samples(op, dtype, gradients=differentiable), SEVERAL)
    ):
        plain = Arguments.of(sample).map(detached)

        def backward(sample: Any = sample) -> None:
            for tensor in tensors_of(Arguments.of(sample).call(op)):
                if tensor.requires_grad:
                    tensor.sum().backward(retain_graph=True)

        def out(plain: Arguments = plain) -> None:
            plain.call(op, out=map_values(plain.call(op), torch.empty_like))

        yield backward if differentiable else lambda plain=plain: plain.call(op)
        if index == 0 and op.supports_out:
            yield out
        if index == 0 and op.get_inplace():
            yield lambda plain=plain: plain.copy().call(op.get_inplace())


def programs(operators: list[Any]) -> Iterator[Callable[[], Any]]:
    """Yield the programs whose calls are recorded, for these OpInfos."""
    for op in operators:
        for dtype in [dtype for dtype in DTYPES if dtype in op.dtypes][:2]:
            with suppress(Exception):
                yield from use(op, dtype)


def named(name: str, *values: Any) -> Call:
    """Return a call. A dictionary as the last value has the keyword arguments."""
    positional, others = (values[:-1], values[-1]) if isinstance(values[-1], dict) else (values, {})
    every = find(name)._schema.arguments
    arguments = {item.name: item.default_value for item in every if item.has_default_value()}
    arguments |= {item.name: value for item, value in zip(every, positional, strict=False)}
    return Call(name, arguments | others)


def into_outputs(calls: dict[str, Call], wanted: set[str]) -> None:
    """Add calls of ``out=`` overloads, made from recorded calls without outputs."""
    for name in wanted - set(calls):
        schema = find(name)._schema
        inputs = [item.name for item in schema.arguments if not item.is_out]
        outputs = [item.name for item in schema.arguments if item.is_out]
        base = name.partition(".")[0]
        for call in [call for call in calls.values() if call.name.partition(".")[0] == base]:
            if not outputs or set(call.arguments) != set(inputs):
                continue
            with suppress(Exception):
                results = tensors_of(run(call.overload, call.on("cpu")))[: len(outputs)]
                made = dict(zip(outputs, map(torch.empty_like, results), strict=True))
                calls[name] = Call(name, call.arguments | made)


def record(operators: list[Any], *, others: bool) -> dict[str, Call]:
    """Return a call of each native overload: of these operators, and with ``others`` of CALLS."""
    wanted = set(native_overloads())
    calls: dict[str, Call] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if others:
            torch.manual_seed(0)
            written = {
                name.replace("serving::", f"{DEVICE}::"): make for name, make in CALLS.items()
            }
            calls.update({name: named(name, *written[name]()) for name in wanted & set(written)})
        for program in programs(operators):
            torch.manual_seed(0)
            with suppress(Exception), Recorder(calls, wanted):
                program()
        into_outputs(calls, wanted)
    return calls
