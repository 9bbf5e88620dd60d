"""Memory that the host and the devices use alike, and whose pages move to where they are used.

Tensors are in it that are made within ``use_mem_pool(MemPool(unified=True))``. Operators that run on
the CPU then work in place, without copies. What a device can make use of, :func:`prefetch` and
:func:`advise` tell it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch

from . import _C
from ._build import NAME
from .devices import DeviceLike, device_index, is_host

__all__ = ["advise", "memory_kind", "prefetch"]

MemoryKind: TypeAlias = Literal["device", "unified", "pinned", "pageable", "unknown"]
Advice: TypeAlias = Literal["none", "read_mostly", "stay_here", "stay_on_host"]


def memory_kind(tensor: torch.Tensor) -> MemoryKind:
    """Return what memory ``tensor`` is in.

    - ``"device"``: a device's own;
    - ``"unified"``: a device's, which the host uses too;
    - ``"pinned"``: the host's, page-locked, with which copies are asynchronous;
    - ``"pageable"``: any other of the host's;
    - ``"unknown"``: a device's that this backend knows nothing of, or none, as of an empty tensor.

    Raises:
        ValueError: ``tensor`` is of another device type.
    """
    if tensor.device.type == "cpu":
        return "pinned" if tensor.is_pinned() else "pageable"
    kind: MemoryKind = _C.memory_kind(_index(tensor), tensor.untyped_storage().data_ptr())
    return kind


def prefetch(tensor: torch.Tensor, to: DeviceLike = None) -> None:
    """Let the memory of ``tensor`` move to where it is used next, on the current stream.

    Args:
        tensor: in unified memory.
        to: a device, or ``"cpu"`` for the host; None for the tensor's own device.

    Raises:
        RuntimeError: the tensor is in other memory.
        ValueError: it is of another device type.
    """
    index = _index(tensor)
    address, size = _range(tensor)
    target = None if is_host(to) else index if to is None else device_index(to)
    if size > 0:
        _C.prefetch(index, address, size, target)


def advise(tensor: torch.Tensor, advice: Advice) -> None:
    """Tell the device how the memory of ``tensor`` will be used. Changes no value.

    Args:
        tensor: in unified memory.
        advice: ``"read_mostly"``: several read it, and each may have a copy; ``"stay_here"``: it stays
            on the tensor's device, even where the host uses it; ``"stay_on_host"``: the other way
            round; ``"none"`` takes back what was said.

    Raises:
        RuntimeError: the tensor is in other memory.
        ValueError: it is of another device type, or ``advice`` is none of these.
    """
    index = _index(tensor)
    address, size = _range(tensor)
    if size > 0:
        _C.advise(index, address, size, advice)


def _index(tensor: torch.Tensor) -> int:
    if tensor.device.type != NAME:
        raise ValueError(f"expected a tensor of {NAME}, got one of {tensor.device}")
    return device_index(tensor.device)


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes from the first element to the last one."""
    if tensor.numel() == 0:
        return 0, 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return tensor.data_ptr(), (last + 1) * tensor.element_size()
