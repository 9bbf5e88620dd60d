"""The sample inputs of PyTorch's OpInfos, made on the CPU and copied to the device."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from backend import DEVICE
from torch.testing._internal import common_device_type

# After each test PyTorch searches the whole stack for the sample, to name it in an error. That
# takes longer than most of these tests, which name their samples themselves.
common_device_type.get_tracked_input = lambda: None
common_device_type.clear_tracked_input = lambda: None

Sample = Any
"""PyTorch's SampleInput."""


def map_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return ``value`` with every leaf of its lists, tuples and dictionaries changed."""
    if isinstance(value, dict):
        return {key: map_values(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        items = [map_values(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return change(value)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors in ``value``, in order."""
    found: list[torch.Tensor] = []

    def visit(leaf: Any) -> None:
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)

    map_values(value, visit)
    return found


class Arguments:
    """The arguments of one call of an operator."""

    def __init__(self, input: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.input = input
        self.args = args
        self.kwargs = kwargs

    @classmethod
    def of(cls, sample: Sample) -> Arguments:
        """Return the arguments of a sample."""
        return cls(sample.input, sample.args, sample.kwargs)

    def map(self, change: Callable[[Any], Any]) -> Arguments:
        """Return the same arguments with every leaf changed."""
        return Arguments(
            map_values(self.input, change),
            map_values(self.args, change),
            map_values(self.kwargs, change),
        )

    def on_device(self, *, input_only: bool = False) -> Arguments:
        """Return copies on the device. An argument that is a device becomes this one."""
        mover = Mover()
        if input_only:
            return Arguments(map_values(self.input, mover), self.args, self.kwargs)
        return self.map(mover)

    def on_host(self) -> Arguments:
        """Return copies on the CPU."""
        return self.map(Mover("cpu"))

    def on_meta(self) -> Arguments:
        """Return tensors without elements, of the same sizes."""
        return self.map(Mover("meta"))

    def copy(self) -> Arguments:
        """Return copies that share nothing with these, on the same devices and of the same layout."""
        return self.map(Mover(None))

    def in_double(self) -> Arguments:
        """Return copies in double precision of what is floating-point or complex."""

        def wide(dtype: torch.dtype) -> torch.dtype:
            return torch.complex128 if dtype.is_complex else torch.float64

        def widen(value: Any) -> Any:
            if isinstance(value, torch.dtype) and (value.is_floating_point or value.is_complex):
                return wide(value)
            if isinstance(value, torch.Tensor) and (
                value.is_floating_point() or value.is_complex()
            ):
                copied = value.detach().to(wide(value.dtype), copy=True)
                return copied.requires_grad_(value.requires_grad)
            return value

        return self.map(widen)

    def tensors(self) -> list[torch.Tensor]:
        """Return all tensors, in order."""
        return tensors_of((self.input, self.args, self.kwargs))

    def call(self, function: Callable[..., Any], **more: Any) -> Any:
        """Call ``function`` with these arguments."""
        return function(self.input, *self.args, **self.kwargs, **more)

    def name_no_device(self) -> bool:
        """Whether the arguments have no tensor and no device."""
        return not self.tensors() and "device" not in self.kwargs


class Mover:
    """Copies tensors with their layout: strides, gaps, overlaps, conjugate and negative bits.

    The same tensor is copied once, and tensors that share a storage still do.
    """

    def __init__(self, device: str | None = DEVICE) -> None:
        self.device = device
        self.tensors: dict[int, torch.Tensor] = {}
        self.storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self.kept: list[torch.Tensor] = []

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.is_meta:
                return value
            if id(value) not in self.tensors:
                self.tensors[id(value)] = self.move(value)
                self.kept.append(value)
            return self.tensors[id(value)]
        if self.device is not None and (
            value in ("cpu", DEVICE)
            or (isinstance(value, torch.device) and value.type in ("cpu", DEVICE))
        ):
            return self.device
        return value

    def move(self, tensor: torch.Tensor) -> torch.Tensor:
        target = self.device or tensor.device
        if tensor.layout is not torch.strided:
            return tensor.detach().to(target, copy=True).requires_grad_(tensor.requires_grad)
        plain = tensor.detach()
        conjugate, negative = plain.is_conj(), plain.is_neg()
        if negative:
            plain = torch._neg_view(plain)
        if conjugate:
            plain = plain.conj()
        moved = self.block(plain).as_strided(plain.shape, plain.stride(), plain.storage_offset())
        if conjugate:
            moved = moved.conj()
        if negative:
            moved = torch._neg_view(moved)
        return moved.detach().requires_grad_(tensor.requires_grad)

    def block(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = (storage._cdata, tensor.dtype)
        if key not in self.storages:
            whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
            self.storages[key] = whole.to(self.device or tensor.device, copy=True)
            self.kept.append(tensor)
        return self.storages[key]


def samples(op: Any, dtype: torch.dtype, *, gradients: bool = False) -> Iterator[Sample]:
    """Yield the operator's samples on the CPU, the same each time.

    Does not use ``op.sample_inputs``, which searches the whole stack for the running test.
    ``torch.manual_seed`` does so, too, so it is called once.
    """
    torch.manual_seed(0)
    for index, sample in enumerate(op.sample_inputs_func(op, "cpu", dtype, gradients)):
        yield sample
        torch.default_generator.manual_seed(index + 1)


def spread(items: Iterator[Sample], count: int) -> Iterator[Sample]:
    """Yield ``count`` samples: the first, the last, and random ones between them.

    Samples next to each other or at equal distances are similar, because many lists of samples are
    products of a few options.
    """
    if count == 1:
        yield from itertools.islice(items, 1)
        return
    every = list(items)
    between = range(1, len(every) - 1)
    chosen = random.Random(8).sample(between, min(count - 2, len(between)))
    yield from (every[place] for place in sorted({0, *chosen, len(every) - 1}) if every)


def errors(op: Any) -> list[Any]:
    """Return PyTorch's error inputs of the device, or of the CPU if the device lacks a dtype. The
    device has fewer, because it finds an index out of range later.
    """
    torch.manual_seed(0)
    try:
        return list(op.error_inputs_func(op, DEVICE))
    except TypeError:
        return list(op.error_inputs_func(op, "cpu"))
