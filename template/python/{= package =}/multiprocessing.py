"""Sends this device's tensors to other processes through CPU copies.

A tensor that goes through a queue or a pipe arrives as a copy on the device of the same index. Two
views of one storage arrive as two storages.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from ._build import NAME

__all__: list[str] = []

Reduction = tuple[Callable[..., Any], tuple[Any, ...]]

_reduce_other_tensor: Callable[[torch.Tensor], Reduction] = reductions.reduce_tensor
_reduce_other_storage: Callable[[torch.UntypedStorage], Reduction] = reductions.reduce_storage


def setup() -> None:
    """Register the pickling of tensors and storages with :mod:`torch.multiprocessing`.

    PyTorch's reductions need storages in shared CPU memory. Remove this once PyTorch queries the
    backend instead (RFC pytorch#192099).
    """
    ForkingPickler.register(torch.Tensor, reduce_tensor)
    ForkingPickler.register(torch.nn.Parameter, reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, reduce_storage)


def has_own_memory(tensor: torch.Tensor) -> bool:
    """Return whether the tensor's elements are on this device, in one storage."""
    plain = tensor.layout is torch.strided and not tensor.is_nested
    return tensor.device.type == NAME and plain


def check_sendable(tensor: torch.Tensor) -> None:
    """Warn about hooks, which are not sent.

    Raises:
        RuntimeError: autograd computed the tensor, and its graph cannot be sent.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "cannot send a tensor that autograd computed to another process; send "
            "tensor.detach() instead"
        )
    torch.utils.hooks.warn_if_has_hooks(tensor)


def reduce_tensor(tensor: torch.Tensor) -> Reduction:
    """Return the function and the arguments that rebuild the tensor from a CPU copy."""
    if not has_own_memory(tensor):
        return _reduce_other_tensor(tensor)
    check_sendable(tensor)
    arguments = (tensor.detach().cpu(), tensor.device, type(tensor), tensor.requires_grad)
    return _rebuild_tensor, arguments


def _rebuild_tensor(
    data: torch.Tensor, device: torch.device, kind: type[torch.Tensor], requires_grad: bool
) -> torch.Tensor:
    return as_sent(data.to(device), kind, requires_grad)


def as_sent(tensor: torch.Tensor, kind: type[torch.Tensor], requires_grad: bool) -> torch.Tensor:
    """Return the tensor as a parameter if it was one, and with its ``requires_grad``."""
    if issubclass(kind, torch.nn.Parameter):
        return kind(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def reduce_storage(storage: torch.UntypedStorage) -> Reduction:
    """Return the function and the arguments that rebuild the storage from a CPU copy."""
    if storage.device.type != NAME:
        return _reduce_other_storage(storage)
    untyped: Any = storage
    return _rebuild_storage, (untyped.cpu(), storage.device)


def _rebuild_storage(data: torch.UntypedStorage, device: torch.device) -> torch.UntypedStorage:
    moved: torch.UntypedStorage = data.to(device=device)
    return moved
