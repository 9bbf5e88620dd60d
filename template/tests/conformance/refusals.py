"""Aspects of errors and warnings, which must be those of the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from backend import DEVICE, backend
from conformance.compare import WrongResult
from conformance.run import Function, NotApplicable, Run
from conformance.samples import Arguments, Sample, tensors_of
from conformance.values import given
from support import supported_dtypes

Change = Callable[[torch.Tensor], torch.Tensor]

ANOTHER_DTYPE = {torch.int64: torch.float32}
"""The dtype of an output that differs from the result's; int64 for all others."""


REPORTS_ERRORS = backend.get_device_properties(0).reports_errors


def is_about_values(run: Run, made: Arguments) -> bool:
    """Return whether only the elements are wrong, so that the call succeeds on meta tensors."""
    try:
        made.on_meta().call(run.op)
    except Exception:
        return False
    return True


def errors(run: Run, mistake: Any) -> None:
    """PyTorch's error inputs: the same exception, with the message of the table or the CPU."""
    made = Arguments.of(mistake.sample_input)
    if any(tensor.dtype not in supported_dtypes() for tensor in made.tensors()):
        raise NotApplicable("a tensor is of a dtype that the backend lacks")
    if {tensor.device.type for tensor in made.tensors()} == {"cpu", DEVICE}:
        refusal = mistake.error_type("what PyTorch's table says of tensors on two devices")
        run.check_refusal(lambda: made.call(run.op), refusal, mistake.error_regex)
        return
    if not REPORTS_ERRORS and is_about_values(run, made):
        raise NotApplicable("the device does not report what only it sees, such as a wrong index")
    mine, theirs = made.on_host(), run.on_device(made)
    run.alike(lambda: mine.call(run.op), lambda: theirs.call(run.op), message=mistake.error_regex)


def expanded_input(run: Run, sample: Sample) -> None:
    """In-place writes to a tensor whose elements share memory: the CPU's error or result."""
    mine = Arguments.of(sample).copy()
    if sample.broadcasts_input or not isinstance(mine.input, torch.Tensor):
        raise NotApplicable
    if mine.input.numel() < 2:
        raise NotApplicable
    mine.input = shared(mine.input)
    theirs = run.on_device(mine)
    function = run.op.get_inplace()
    both = run.alike(lambda: mine.call(function), lambda: theirs.call(function))
    if both is not None:
        run.check(*both)


def expanded_output(run: Run, sample: Sample) -> None:
    """The same for out=. Values are not compared, because each element is written many times."""
    mine = Arguments.of(sample)
    expected = run.reference(lambda: mine.call(run.op))
    if not isinstance(expected, (torch.Tensor, tuple)):
        raise NotApplicable
    if any(
        tensor.layout is not torch.strided or tensor.numel() < 2 for tensor in tensors_of(expected)
    ):
        raise NotApplicable
    write(run, mine, expected, shared, values=False)


def shared(like: torch.Tensor) -> torch.Tensor:
    """Return an expanded tensor of this shape, of one element in a block for all elements."""
    whole = torch.zeros(like.numel(), dtype=like.dtype, device=like.device)
    whole[0] = like.flatten()[0]
    return whole[:1].expand(like.shape)


def other_output(run: Run, sample: Sample) -> None:
    """out= of another size, which is resized with a warning, and of another dtype."""
    mine = Arguments.of(sample)
    expected = run.reference(lambda: mine.call(run.op))
    if not tensors_of(expected) or not isinstance(expected, (torch.Tensor, tuple)):
        raise NotApplicable
    write(run, mine, expected, longer)
    write(run, mine, expected, of_another_dtype)


def longer(like: torch.Tensor) -> torch.Tensor:
    return torch.zeros((*like.shape, 2), dtype=like.dtype, device=like.device)


def of_another_dtype(like: torch.Tensor) -> torch.Tensor:
    dtype = ANOTHER_DTYPE.get(like.dtype, torch.int64)
    return torch.zeros(like.shape, dtype=dtype, device=like.device)


def write(run: Run, mine: Arguments, expected: Any, make: Change, *, values: bool = True) -> None:
    """Write the results to outputs made by ``make``. Compare the outputs and the warnings."""
    theirs = run.on_device(mine)
    outputs = given(expected, [make(tensor) for tensor in tensors_of(expected)])
    place = given(expected, [make(tensor.to(DEVICE)) for tensor in tensors_of(expected)])
    both = run.alike(
        lambda: warnings_of(lambda: mine.call(run.op, out=outputs)),
        lambda: warnings_of(lambda: theirs.call(run.op, out=place)),
    )
    if both is None:
        return
    said, wanted = both
    if said != wanted:
        raise WrongResult(f"warns of out= {said} times, expected {wanted}")
    if values:
        run.check_call(place, outputs, theirs, mine)


def warnings_of(call: Function) -> int:
    """Call, and count the warnings about resizing, including those that PyTorch gives only once."""
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call()
    finally:
        torch.set_warn_always(False)
    return sum("resized" in str(warning.message) for warning in said)
