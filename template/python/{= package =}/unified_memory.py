"""Unified memory, which the host and the devices address, and whose pages move between them.

Tensors created within ``use_mem_pool(MemPool(unified=True))`` are in unified memory. Operators that
run on the CPU then work in place, without copies. :func:`prefetch` and :func:`advise` give the
device hints about the use of the memory.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch

from . import _C
from ._build import NAME
from .devices import DeviceLike, device_index, is_host

__all__ = ["advise", "memory_kind", "prefetch"]

MemoryKind: TypeAlias = Literal["device", "unified", "pinned", "pageable", "unknown"]
Advice: TypeAlias = Literal["none", "read_mostly", "prefer_device", "prefer_host"]


def memory_kind(tensor: torch.Tensor) -> MemoryKind:
    """Return the kind of memory that ``tensor`` is in.

    - ``"device"``: memory of the device;
    - ``"unified"``: memory of the device that the host can address;
    - ``"pinned"``: page-locked host memory, for asynchronous copies;
    - ``"pageable"``: other host memory;
    - ``"unknown"``: memory that the device library does not know, or none, as for an empty tensor.

    Raises:
        ValueError: ``tensor`` is on a device of another type.
    """
    if tensor.device.type == "cpu":
        return "pinned" if tensor.is_pinned() else "pageable"
    kind: MemoryKind = _C.memory_kind(_index(tensor), tensor.untyped_storage().data_ptr())
    return kind


def prefetch(tensor: torch.Tensor, to: DeviceLike = None) -> None:
    """Move the memory of ``tensor`` to a device or to the host, on the current stream.

    Args:
        tensor: in unified memory.
        to: a device, or ``"cpu"`` for the host; None for the tensor's own device.

    Raises:
        RuntimeError: the tensor is not in unified memory.
        ValueError: the tensor is on a device of another type.
    """
    index = _index(tensor)
    address, size = _range(tensor)
    target = None if is_host(to) else index if to is None else device_index(to)
    if size > 0:
        _C.prefetch(index, address, size, target)


def advise(tensor: torch.Tensor, advice: Advice) -> None:
    """Give the device a hint about the use of ``tensor``'s memory. Does not change any value.

    Args:
        tensor: in unified memory.
        advice: ``"read_mostly"``: each device that reads it may have a copy; ``"prefer_device"``:
            it stays on the device when the host uses it; ``"prefer_host"``: it stays on the
            host when a device uses it; ``"none"``: removes the advice.

    Raises:
        RuntimeError: the tensor is not in unified memory.
        ValueError: the tensor is on a device of another type, or ``advice`` has another value.
    """
    if advice not in get_args(Advice):
        raise ValueError(f"{advice!r} is no advice: choose from {', '.join(get_args(Advice))}")
    index = _index(tensor)
    address, size = _range(tensor)
    if size > 0:
        _C.advise(index, address, size, advice)


def _index(tensor: torch.Tensor) -> int:
    if tensor.device.type != NAME:
        raise ValueError(f"expected a tensor of {NAME}, got one of {tensor.device}")
    return device_index(tensor.device)


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the address of the first element, and the bytes from it to the end of the last one."""
    if tensor.numel() == 0:
        return 0, 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return tensor.data_ptr(), (last + 1) * tensor.element_size()
