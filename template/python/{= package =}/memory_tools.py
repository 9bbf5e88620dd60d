"""Snapshots and a history of allocations, for the tools of ``torch.cuda._memory_viz``."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _C, memory
from .devices import DeviceLike

__all__ = ["MemPool", "memory_snapshot"]


class MemPool(memory.MemPool):
    """A private pool with snapshots, see :class:`.memory.MemPool`."""

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Return :func:`memory_snapshot` of this pool."""
        return memory_snapshot(self.id, include_traces)


def setup() -> None:
    """Add the functions to :mod:`.memory`, as in ``torch.cuda.memory``."""
    for offered in (
        MemPool,
        memory_snapshot,
        _record_memory_history,
        _snapshot,
        _dump_snapshot,
    ):
        setattr(memory, offered.__name__, offered)


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """Return the allocator's segments on all devices, with their blocks.

    Args:
        mempool_id: return only the segments of this private pool, :attr:`MemPool.id`; (0, 0)
            returns all.
        include_traces: ignored, for compatibility with ``torch.cuda``; segments have no traces.
    """
    segments: list[dict[str, Any]] = _C.memory_snapshot(False)["segments"]
    if mempool_id in (None, (0, 0)):
        return segments
    return [segment for segment in segments if segment["segment_pool_id"] == mempool_id]


def _record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: DeviceLike = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Sequence[str] | None = None,
) -> None:
    """Record allocations, as ``torch.cuda.memory._record_memory_history`` does.

    Args:
        enabled: ``"state"`` records information about live allocations, ``"all"`` also records
            every allocation and release, and ``None`` stops the recording and discards it.
        context: the events with call stacks: live allocations (``"state"``), also the recorded
            allocations (``"alloc"``), also the releases (``"all"``), or nothing (``None``).
        stacks: ``"python"`` for Python and TorchScript frames, ``"all"`` for C++ frames too, whose
            names take long to look up for a snapshot.
        max_entries: the number of recorded events of each device; older ones are dropped.
        device: ignored, for compatibility with ``torch.cuda``; all devices are recorded.
        clear_history: discard earlier records.
        compile_context: not supported, only ``False``.
        global_record_annotations: not supported, only ``False``.
        skip_actions: events that are not recorded, by their names in a snapshot.

    Raises:
        ValueError: an argument is not one of its choices.
        NotImplementedError: an argument is not supported.
    """
    _check_choice("enabled", enabled, (None, "state", "all"))
    _check_choice("context", context, _CONTEXTS)
    _check_choice("stacks", stacks, ("python", "all"))
    if compile_context or global_record_annotations:
        raise NotImplementedError(
            "compile_context and global_record_annotations are not supported: leave them False"
        )
    _C.record_memory_history(
        enabled is not None,
        _CONTEXTS.index(context),
        stacks == "all",
        max_entries if enabled == "all" else 1,
        list(skip_actions or ()),
        clear_history,
    )


_CONTEXTS = (None, "state", "alloc", "all")  # in the order of StacksOf


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not any(value is choice or value == choice for choice in choices):
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def _snapshot(device: DeviceLike = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return the allocator's state and history, as ``torch.cuda.memory._snapshot`` does.

    The tools of ``torch.cuda._memory_viz`` and pytorch.org/memory_viz read it.

    Args:
        device: ignored, for compatibility with ``torch.cuda``; a snapshot includes all devices.
        augment_with_fx_traces: not supported, only ``False``.

    Raises:
        NotImplementedError: an argument is not supported.
    """
    if augment_with_fx_traces:
        raise NotImplementedError("augment_with_fx_traces is not supported: leave it False")
    snapshot: dict[str, Any] = _C.memory_snapshot(True)
    return snapshot


def _dump_snapshot(
    filename: str | Path = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write :func:`_snapshot` to a file for pytorch.org/memory_viz."""
    # The page cannot read later protocols. Python 3.14's default is protocol 5.
    Path(filename).write_bytes(pickle.dumps(_snapshot(None, augment_with_fx_traces), protocol=4))
