"""Aspects in which each argument in turn has each memory layout that PyTorch has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch
from conformance import compare
from conformance.compare import WrongResult
from conformance.layouts import offset
from conformance.run import NotApplicable, Run
from conformance.samples import Arguments, Sample, tensors_of
from conformance.values import (
    compare_gradients,
    default_device,
    differentiable,
    gradient,
    ones_like,
)


def reversed_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values with the first dimension innermost in memory."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def every_other(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values with a gap after each."""
    whole = tensor.new_zeros([2 * size for size in tensor.shape])
    return whole[(slice(None, None, 2),) * tensor.dim()].copy_(tensor)


def odd_strides(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values with arbitrary strides of dimensions of at most one element."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return tensor.as_strided(
        tensor.shape,
        [7 if size <= 1 else stride for size, stride in sizes],
        tensor.storage_offset(),
    )


def overlapping(tensor: torch.Tensor) -> torch.Tensor:
    """Return overlapping windows of the first values: the stride of each dimension is 1."""
    return tensor.reshape(-1).as_strided(tensor.shape, (1,) * tensor.dim())


def layouts_of(tensor: torch.Tensor, *, repeats: bool) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensor in other layouts; with ``repeats`` also in some that share elements."""
    if (
        tensor.layout is not torch.strided
        or tensor.dim() == 0
        or tensor.is_conj()
        or tensor.is_neg()
    ):
        return
    for change in (reversed_order, every_other, offset, odd_strides):
        changed = change(tensor)
        if changed.stride() != tensor.stride() or change is offset:
            yield change.__name__, changed
    if not repeats or tensor.numel() == 0:
        return
    for dim, size in enumerate(tensor.shape):
        if size > 1:
            yield f"broadcast dimension {dim}", tensor.narrow(dim, 0, 1).expand_as(tensor)
    if tensor.dim() > 1:
        yield "overlapping", overlapping(tensor)


def arguments_of(run: Run, sample: Sample) -> Iterator[tuple[str, Arguments]]:
    """Yield a sample's arguments with each tensor in turn in each layout."""
    plain, called = Arguments.of(sample), Arguments.of(sample).copy()
    run.reference(lambda: called.call(run.op))
    for place, (tensor, after) in enumerate(zip(plain.tensors(), called.tensors(), strict=True)):
        is_written = tensor.layout is torch.strided and not compare.same(tensor, after)
        repeats = run.compared.get("expanded", True) and not is_written
        for name, changed in layouts_of(tensor.detach(), repeats=repeats):
            new = changed.requires_grad_(tensor.requires_grad)

            def replace(leaf: Any, old: Any = tensor, new: Any = new) -> Any:
                return new if leaf is old else leaf

            yield f"argument {place}, {name}", plain.map(replace).copy()


def is_stable(call: Callable[[Arguments], Any], mine: Arguments) -> bool:
    """Whether double precision gives the CPU's result. A matrix that repeats a row is singular."""
    expected, precise = call(mine.copy()), call(mine.copy().in_double())
    try:
        for one, other in zip(tensors_of(precise), tensors_of(expected), strict=True):
            compare.check_values(one.to(other.dtype), other, None, False)
    except WrongResult:
        return False
    return True


def strides(run: Run, sample: Sample) -> None:
    """The plain call. A layout that the CPU refuses is skipped."""
    for name, mine in arguments_of(run, sample):
        theirs, original = run.on_device(mine), mine.copy()
        with suppress(NotApplicable):
            expected = run.reference(lambda mine=mine: mine.call(run.op))
            with default_device(mine):
                actual = run.device(lambda theirs=theirs: theirs.call(run.op))
            try:
                run.check_call(actual, expected, theirs, mine)
            except WrongResult as error:
                if is_stable(lambda given: given.call(run.op), original):
                    raise WrongResult(f"{name}: {error}") from None


def strides_backward(run: Run, sample: Sample) -> None:
    """The gradient of the sum of the results."""

    def gradients(given: Arguments) -> Any:
        outputs = differentiable(given.call(run.op), sample)
        return gradient(outputs, given, [ones_like(output) for output in outputs])

    for name, mine in arguments_of(run, sample):
        with suppress(NotApplicable):
            try:
                compare_gradients(run, sample, mine, ones_like)
            except WrongResult as error:
                if is_stable(gradients, mine):
                    raise WrongResult(f"{name}: {error}") from None
