"""The aspect that is about memory: what an operator needs above its arguments and results."""

from __future__ import annotations

from contextlib import suppress

import torch
from backend import backend
from conformance.compare import WrongResult
from conformance.run import NotApplicable, Run
from conformance.samples import Arguments, Sample
from conformance.values import default_device

MOST = 3
"""So many times what arguments and results take; and as much as SMALL is no harm."""

SMALL = 1 << 18
ENOUGH = 1 << 19
"""Bytes of arguments and results from which on a measurement says something."""


def memory(run: Run, sample: Sample) -> None:
    """The peak of device memory above arguments and results, which grow until they are large enough."""
    mine = Arguments.of(sample)
    found: tuple[int, int] | None = None
    factor = 1
    while found is None or found[1] < ENOUGH:
        try:
            found = measured(run, mine, factor)
        except Exception as error:  # not every call can grow
            if found is None:
                raise NotApplicable from error
            break
        if factor > ENOUGH or not mine.tensors():
            break
        factor *= 2
    extra, given = found
    run.extra = max(run.extra or 0.0, extra / max(given, SMALL))
    if extra > MOST * given + SMALL:
        raise WrongResult(f"{extra} bytes above the {given} of arguments and results")


def measured(run: Run, mine: Arguments, factor: int) -> tuple[int, int]:
    """Return the peak above arguments and results, and what these take themselves."""
    backend.synchronize()
    without = backend.memory_allocated()
    theirs = run.on_device(mine.map(lambda leaf: enlarged(leaf, factor)))
    backend.reset_peak_memory_stats()
    with default_device(mine):
        result = run.device(lambda: theirs.call(run.op))
    peak, after = backend.max_memory_allocated(), backend.memory_allocated()
    with suppress(Exception):
        backend.synchronize()
    del result
    return peak - after, max(after - without, 0)


def enlarged(leaf: object, factor: int) -> object:
    """Return a tensor that repeats in every dimension but those of one element."""
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return leaf
    tiles = [factor if size > 1 else 1 for size in leaf.shape]
    return leaf.detach() if factor == 1 else leaf.detach().repeat(tiles)
