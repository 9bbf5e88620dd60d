"""Ranges for the vendor's own tools. ``torch.profiler`` itself needs nothing of this module."""

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
    """Show each operator and each ``record_function`` as a range in the device's own tools.

    It is for this device what :class:`torch.autograd.profiler.emit_nvtx` is for CUDA: run the
    program under the vendor's profiler. A range is named after its operator, with ``seq = N``, by
    which a node of the backward pass is found that an operator of the forward pass has made.

    Args:
        enabled: do it at all.
        record_shapes: append the sizes of the tensors that the operator was given.

    Raises:
        NotImplementedError: the device library has no ranges.
        RuntimeError: another profiler is on in this thread.
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
        synchronize()
        _disable_profiler()
        _run_on_profiler_stop()  # type: ignore[no-untyped-call]
