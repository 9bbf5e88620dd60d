"""The aspect of memory: how much an operator needs besides its arguments and results."""

from __future__ import annotations

from functools import partial

import torch
from backend import backend
from conformance.compare import WrongResult
from conformance.run import Function, NotApplicable, Run
from conformance.samples import Arguments, Sample
from conformance.values import default_device

MOST = 3
"""The limit, as a multiple of arguments and results. SMALL bytes more are allowed."""

SMALL = 1 << 18
ENOUGH = 1 << 19
"""The least bytes of arguments and results for a useful measurement."""


def memory(run: Run, sample: Sample) -> None:
    """The peak of device memory above arguments and results, which are enlarged to ENOUGH bytes.

    Calls of which a part runs on the CPU are left out: its results are copied to the device.
    """
    mine = Arguments.of(sample)
    found: tuple[int, int] | None = None
    factor = 1
    while found is None or found[1] < ENOUGH:
        try:
            with backend.count_fallbacks() as fallbacks:
                found = measured(run.op, mine.map(partial(enlarged, factor)))
        except Exception as error:  # not every call can grow
            if found is None:
                raise NotApplicable from error
            break
        if fallbacks:
            raise NotApplicable
        if factor > ENOUGH or not any(tensor.numel() for tensor in mine.tensors()):
            break
        factor *= 2
    route = run.on_device(mine)
    run.device(lambda: route.call(run.op))
    extra, given = found
    run.extra = max(run.extra or 0.0, extra / max(given, SMALL))
    if is_much(extra, given):
        raise WrongResult(f"{extra} bytes above the {given} of arguments and results")


def is_much(extra: int, given: int) -> bool:
    """Whether an operator may not need so many extra bytes."""
    return extra > MOST * given + SMALL


def measured(function: Function, mine: Arguments) -> tuple[int, int]:
    """Return the bytes of the peak above arguments and results, and the bytes of these."""
    backend.synchronize()
    without = backend.memory_allocated()
    theirs = mine.on_device()
    backend.reset_peak_memory_stats()
    with default_device(mine):
        result = theirs.call(function)
    peak, after = backend.max_memory_allocated(), backend.memory_allocated()
    del result
    backend.synchronize()
    return peak - after, max(after - without, 0)


def enlarged(factor: int, leaf: object) -> object:
    """Return a tensor repeated in every dimension of more than one element."""
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return leaf
    tiles = [factor if size > 1 else 1 for size in leaf.shape]
    return leaf.detach() if factor == 1 else leaf.detach().repeat(tiles)
