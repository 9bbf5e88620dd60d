"""Ranges for the vendor's own tools. ``torch.profiler`` does not need this module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch._C._autograd import _disable_profiler, _enable_profiler
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch.autograd.profiler import _run_on_profiler_start, _run_on_profiler_stop

from . import _C
from ._build import NAME
from .devices import synchronize

__all__ = ["emit_ranges"]


@contextmanager
def emit_ranges(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """Context manager that shows operators and ``record_function`` as ranges in the vendor's tools.

    It is the equivalent of :class:`torch.autograd.profiler.emit_nvtx`: run the program under the
    vendor's profiler. A range has the name of its operator, with ``seq = N``. A node of the
    backward pass has the same number as the operator of the forward pass that created it.

    Args:
        enabled: whether to emit ranges.
        record_shapes: append the shapes of the operator's input tensors.

    Raises:
        NotImplementedError: the device library has no ranges.
        RuntimeError: another profiler is active in this thread.
    """
    if not enabled:
        yield
        return
    if ("ranges", "push_range", True) not in _C.device_functions():
        raise NotImplementedError(
            f"{NAME}'s device library has no ranges: write the functions of ranges.h in the device's "
            "folder, or use torch.profiler"
        )
    synchronize()
    no_times = (False, False, False, False)
    config = ProfilerConfig(
        ProfilerState.PRIVATEUSE1, record_shapes, *no_times, _ExperimentalConfig()
    )
    _enable_profiler(config, set())
    _run_on_profiler_start()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        try:
            synchronize()
        finally:
            _disable_profiler()
            _run_on_profiler_stop()  # type: ignore[no-untyped-call]
