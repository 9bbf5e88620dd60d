"""Aspects of memory layout: strides of results, inputs in every layout, and dimensions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch
from conformance import compare
from conformance.compare import WrongResult
from conformance.run import NotApplicable, Run
from conformance.samples import Arguments, Sample, map_values, tensors_of
from conformance.values import default_device

MOST_DIMENSIONS = 64
"""The most dimensions that PyTorch's operators accept."""

Change = Callable[[torch.Tensor], torch.Tensor]


def changed(sample: Sample, change: Change) -> Arguments:
    """Return a sample's arguments with strided tensors changed, or raise if none changes."""
    kept = True

    def visit(leaf: object) -> object:
        nonlocal kept
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
            return leaf
        new = change(leaf.detach())
        kept = kept and new.is_set_to(leaf)
        return new

    arguments = Arguments.of(sample)
    if change in OF_THE_INPUT:
        arguments.input = map_values(arguments.input, visit)
    else:
        arguments = arguments.map(visit)
    if kept and change is not unchanged:
        raise NotApplicable
    return arguments


def unchanged(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return (
        tensor.contiguous(memory_format=torch.channels_last)
        if tensor.dim() == 4 and tensor.numel()
        else tensor
    )


def offset(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values at an offset, less aligned than an allocation."""
    whole = tensor.new_zeros(tensor.numel() + 3)
    return whole[3:].view(tensor.shape).copy_(tensor)


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Return the first row for every row."""
    return tensor[:1].expand_as(tensor) if tensor.dim() else tensor


OF_THE_INPUT = (expanded,)
"""Changes of the first argument only: operators may write to others, such as statistics."""


def conjugate(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values as a view of their conjugates."""
    return tensor.conj().resolve_conj().conj() if tensor.is_complex() else tensor


def negative(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values as a view of their negatives."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    return torch._neg_view(tensor.neg())


def layout(run: Run, sample: Sample) -> None:
    """Compare strides, bits and aliases of results, for several layouts of the arguments."""
    tried = False
    for change in (unchanged, transposed, channels_last):
        try:
            mine = changed(sample, change)
            theirs = run.on_device(mine)
            expected = run.reference(lambda mine=mine: mine.call(run.op))
        except NotApplicable:
            continue
        tried = True
        with default_device(mine):
            actual = run.device(lambda theirs=theirs: theirs.call(run.op))
        for one, other in zip(tensors_of(actual), tensors_of(expected), strict=True):
            have, want = description(one, theirs), description(other, mine)
            if have != want:
                raise WrongResult(
                    f"{change.__name__}: of shape {tuple(other.shape)} {have}, expected {want}"
                )
    if not tried:
        raise NotApplicable


def description(tensor: torch.Tensor, arguments: Arguments) -> str:
    """Describe the layout of a result. Strides of dimensions of size 1 do not count."""
    if tensor.layout is not torch.strided:
        return str(tensor.layout)
    words = []
    if tensor.numel():
        sizes = zip(tensor.stride(), tensor.shape, strict=True)
        words.append(f"strides {[stride if size > 1 else '-' for stride, size in sizes]}")
        storage = tensor.untyped_storage().data_ptr()
        views = [
            index
            for index, argument in enumerate(arguments.tensors())
            if argument.layout is torch.strided and argument.untyped_storage().data_ptr() == storage
        ]
        if views:
            bits = "conj " * tensor.is_conj() + "neg " * tensor.is_neg()
            words.append(f"a {bits}view of argument {views} at {tensor.storage_offset()}")
    return ", ".join(words)


def views(run: Run, sample: Sample) -> None:
    """The plain call on views: transposed, with an offset, expanded, conjugate, negative."""
    changes = (transposed, channels_last, offset, expanded, conjugate, negative)
    if not run.compared.get("expanded", True):
        changes = tuple(change for change in changes if change is not expanded)
    each(run, sample, changes)


def scalar(tensor: torch.Tensor) -> torch.Tensor:
    """Return the first element, or 0 for int64: the CPU does not check all indices."""
    if tensor.numel() == 0:
        return tensor
    return tensor.new_zeros(()) if tensor.dtype is torch.int64 else tensor.flatten()[0].clone()


def most_dimensions(tensor: torch.Tensor) -> torch.Tensor:
    ones = MOST_DIMENSIONS - tensor.dim()
    return tensor.reshape((1,) * ones + tuple(tensor.shape)) if tensor.dim() else tensor


def ranks(run: Run, sample: Sample) -> None:
    """The plain call on tensors of no dimensions, and of as many as PyTorch accepts."""
    each(run, sample, (scalar, most_dimensions))


def each(run: Run, sample: Sample, changes: tuple[Change, ...]) -> None:
    """Compare a call with each change. The device must refuse what the CPU refuses."""
    tried = False
    for change in changes:
        with suppress(NotApplicable):
            compare_call(run, change.__name__, changed(sample, change))
            tried = True
    if not tried:
        raise NotApplicable


def compare_call(run: Run, name: str, mine: Arguments) -> None:
    """Compare a call on both devices. ``name``: how the arguments were changed, for errors."""
    theirs = run.on_device(mine)
    with default_device(mine):
        both = run.alike(lambda: mine.call(run.op), lambda: theirs.call(run.op))
    if both is None:
        return
    try:
        run.check_call(*both, theirs, mine)
    except WrongResult as error:
        raise WrongResult(f"{name}: {error}") from None


def repeated(run: Run, sample: Sample) -> None:
    """The plain call twice with the same seed, which must give the same bits."""
    mine = Arguments.of(sample)
    run.reference(lambda: mine.call(run.op))
    results = []
    for _ in range(2):
        theirs = run.on_device(mine)
        torch.manual_seed(0)
        with default_device(mine):
            results.append(run.device(lambda theirs=theirs: theirs.call(run.op)))
    first = map_values(
        results[0], lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf
    )
    compare.check(results[1], first, tolerance=(0, 0), values=run.compared.get("values", True))
