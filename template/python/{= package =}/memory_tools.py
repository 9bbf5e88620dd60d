"""Who allocated memory: snapshots and a history, for the tools of ``torch.cuda._memory_viz``."""

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
    """A private pool that can be looked at, see :class:`.memory.MemPool`."""

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Return :func:`memory_snapshot` of this pool."""
        return memory_snapshot(self.id, include_traces)


def setup() -> None:
    """Offer the functions where ``torch.cuda.memory`` has them."""
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
    """Return the segments that the allocator has from all devices, and the blocks that they hold.

    Args:
        mempool_id: only those of a private pool, :attr:`MemPool.id`; (0, 0) is all of them.
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
    """Record who allocates memory, as ``torch.cuda.memory._record_memory_history`` does.

    Args:
        enabled: ``"state"`` remembers who allocated the memory that there is, ``"all"`` every
            allocation and release, and ``None`` ends the recording and forgets it.
        context: whose call stacks are kept: of the memory that there is (``"state"``), of the
            recorded allocations as well (``"alloc"``), of the releases as well (``"all"``), or of
            nothing (``None``).
        stacks: ``"python"`` for frames of Python and TorchScript, ``"all"`` for those of C++ too,
            whose names take long to find when a snapshot is taken.
        max_entries: the number of recorded events of each device; older ones are dropped.
        device: ignored, for compatibility with ``torch.cuda``; all devices are recorded.
        clear_history: forget what was recorded before.
        compile_context: not supported, only ``False``.
        global_record_annotations: not supported, only ``False``.
        skip_actions: events that are not recorded, by the names that a snapshot has for them.

    Raises:
        ValueError: an argument is none of its choices.
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


def _snapshot(device: DeviceLike = None) -> dict[str, Any]:
    """Return what the allocator has and did, as ``torch.cuda.memory._snapshot`` does.

    The tools of ``torch.cuda._memory_viz`` and pytorch.org/memory_viz read it.

    Args:
        device: ignored, for compatibility with ``torch.cuda``; a snapshot has all devices.
    """
    snapshot: dict[str, Any] = _C.memory_snapshot(True)
    return snapshot


def _dump_snapshot(filename: str | Path = "dump_snapshot.pickle") -> None:
    """Write :func:`_snapshot` to a file for pytorch.org/memory_viz."""
    # The page reads no later protocol, which Python 3.14 would take.
    Path(filename).write_bytes(pickle.dumps(_snapshot(), protocol=4))
