"""Tensors and events that are sent to other processes without a copy.

A queue or a pipe of ``torch.multiprocessing`` sends a handle of the memory, and the other process
uses the same memory. The memory stays valid while a process uses it: the process that allocated it
keeps it after its own tensors are freed, and detects when other processes end. Start processes with
``spawn`` or ``forkserver``.

This needs a device with ``sharing.h``. On other devices, and for memory that the device library
did not allocate, tensors are copied, as without this module.
"""

from __future__ import annotations

import threading
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from . import _C
from ._build import NAME
from .devices import device_count, get_device_properties
from .multiprocessing import (
    Reduction,
    as_sent,
    check_sendable,
    has_own_memory,
    reduce_storage,
    reduce_tensor,
)

__all__ = ["ipc_collect"]

Use = tuple[int, ...]
"""Identifies one use of exported memory: the owner process, the allocation and a use number."""

_events: dict[int, torch.Event] = {}
"""This process's events that other processes may use, by their number."""
_lock = threading.RLock()  # for `_events`; a destructor may collect too


def ipc_collect(*, take_back: bool = False) -> None:
    """Free memory that was kept for other processes and that they no longer use.

    This also runs automatically when a tensor is sent, when the last tensor of sent memory is
    deleted, and before the allocator allocates memory from the device.

    Args:
        take_back: also free memory that was sent and not received yet, for example because the
            receiver was killed. Receiving it later raises :class:`RuntimeError`.
    """
    if take_back:
        _C.ipc_take_back()
    _C.ipc_collect()
    with _lock:
        in_use = _C.ipc_exports()
        for number in [number for number in _events if number not in in_use]:
            _events.pop(number, None)


def setup() -> None:
    """Register with :mod:`torch.multiprocessing` in place of the reductions that copy."""
    ForkingPickler.register(torch.Tensor, _reduce_tensor)
    ForkingPickler.register(torch.nn.Parameter, _reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)
    ForkingPickler.register(torch.Event, _reduce_event)


def _reduce_tensor(tensor: torch.Tensor) -> Reduction:
    if not has_own_memory(tensor):
        return reduce_tensor(tensor)
    check_sendable(tensor)
    shared = _share(tensor.untyped_storage())
    if shared is None:
        return reduce_tensor(tensor)
    place = (tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride())
    bits = (tensor.is_conj(), tensor.is_neg(), tensor.requires_grad)
    return _rebuild_tensor, (type(tensor), shared, place, bits)


def _rebuild_tensor(
    kind: type[torch.Tensor],
    shared: tuple[Any, ...],
    place: tuple[torch.dtype, int, torch.Size, tuple[int, ...]],
    bits: tuple[bool, bool, bool],
) -> torch.Tensor:
    storage = _rebuild_storage(*shared)
    dtype, offset, size, stride = place
    is_conj, is_neg, requires_grad = bits
    tensor = torch.empty(0, dtype=dtype, device=storage.device)
    tensor.set_(storage, offset, size, stride)
    if is_conj:
        tensor = torch._conj(tensor)
    if is_neg:
        tensor = torch._neg_view(tensor)
    return as_sent(tensor, kind, requires_grad)


def _reduce_storage(storage: torch.UntypedStorage) -> Reduction:
    shared = _share(storage) if storage.device.type == NAME else None
    return reduce_storage(storage) if shared is None else (_rebuild_storage, shared)


def _share(storage: torch.UntypedStorage) -> tuple[Any, ...] | None:
    """Return the arguments of `_rebuild_storage`, or None if the storage must be copied."""
    if storage.nbytes() == 0 or not _C.ipc_has_memory():
        return None
    shared = _C.ipc_share_storage(storage._cdata)
    return None if shared is None else (_identity(shared[1]), *shared)


def _rebuild_storage(
    identity: bytes, use: Use, index: int, handle: bytes, offset: int, size: int
) -> torch.UntypedStorage:
    _check_device(identity, use, index)
    storage: torch.UntypedStorage = _C.ipc_receive_storage(use, index, handle, offset, size)
    return storage


def _reduce_event(event: torch.Event) -> Reduction:
    if event.device.type != NAME:
        raise RuntimeError(f"cannot send an event of {event.device} to another process")
    if not _C.ipc_has_events():
        raise NotImplementedError(
            f"cannot send an event to another process: {NAME}'s device library has no export_event "
            "and open_event; send tensors, or synchronize before"
        )
    if event.event_id == 0:
        raise RuntimeError(
            "cannot send an event that was never recorded to another process: record it before"
        )
    index = event.device.index
    ipc_collect()
    with _lock:
        use, *rest = _C.ipc_share_event(event.event_id, index)
        _events[use[4]] = event
    return _rebuild_event, (_identity(index), use, *rest)


def _rebuild_event(identity: bytes, use: Use, index: int, handle: bytes) -> torch.Event:
    _check_device(identity, use, index)
    if _C.ipc_is_of_this_process(use):
        event = _events.get(use[4])
        if event is None:
            raise RuntimeError(
                "this event was already received, or ipc_collect(take_back=True) withdrew it: send "
                "it again"
            )
        _C.ipc_end(use)
        return event
    received: torch.Event = _C.ipc_receive_event(use, index, handle)
    weakref.finalize(received, _C.ipc_release_event, use).atexit = False
    return received


def _identity(index: int) -> bytes:
    return get_device_properties(index).uuid


def _check_device(identity: bytes, use: Use, index: int) -> None:
    """Raise unless the device has the same index in both processes."""
    if index >= device_count() or _identity(index) != identity:
        raise RuntimeError(
            f"process {use[0]} sent a tensor or an event on {NAME}:{index}, which is another "
            "device or none in this process: make the same devices visible to both, in one order"
        )
