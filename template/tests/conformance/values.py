"""Aspects of values: results, gradients and outputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch
from backend import DEVICE
from conformance import compare
from conformance.run import Function, NotApplicable, Run
from conformance.samples import Arguments, Mover, Sample, tensors_of

LOW_PRECISION = torch.bfloat16
"""The dtype that autocast casts to."""


def forward(run: Run, sample: Sample) -> None:
    """The plain call. Arguments that the operator changes must equal the CPU's afterwards."""
    call_and_compare(run, Arguments.of(sample), run.op)


def noncontiguous(run: Run, sample: Sample) -> None:
    """The plain call on tensors with gaps in their memory."""
    call_and_compare(run, with_gaps(sample), run.op)


def with_gaps(sample: Sample) -> Arguments:
    """Return a sample's arguments with gaps in their memory."""
    try:
        return Arguments.of(sample.noncontiguous())
    except RuntimeError as error:
        raise NotApplicable from error  # only strided tensors can have gaps


def call_and_compare(run: Run, mine: Arguments, function: Function) -> None:
    theirs = run.on_device(mine)
    expected = run.reference(lambda: mine.call(function))
    with default_device(mine):
        actual = run.device(lambda: theirs.call(function))
    run.check_call(actual, expected, theirs, mine)
    for one, other in zip(theirs.tensors(), mine.tensors(), strict=True):
        if one.layout is torch.strided and one.device.type == DEVICE:
            run.check(one, other)


def default_device(arguments: Arguments) -> AbstractContextManager[Any]:
    """Return a context in which a factory without a device argument uses the device."""
    return torch.device(DEVICE) if arguments.name_no_device() else nullcontext()


def in_place(run: Run, sample: Sample) -> None:
    """The in-place variant, which must return its input: also with gaps, and on one row."""
    given = Arguments.of(sample)
    if not isinstance(given.input, torch.Tensor):
        raise NotApplicable
    with suppress(NotApplicable):
        change_in_place(run, with_gaps(sample))
    if given.input.layout is torch.strided and given.input.dim() and given.input.size(0) > 1:
        with suppress(NotApplicable):
            change_in_place(run, Arguments(given.input[:1], given.args, given.kwargs))
    change_in_place(run, given)


def change_in_place(run: Run, given: Arguments) -> None:
    mine, theirs = given.copy(), run.on_device(given)
    function = run.op.get_inplace()
    try:
        expected = run.reference(lambda: mine.call(function))
    except NotApplicable as reason:
        # The device finds an index that is out of range later.
        if isinstance(reason.__cause__, RuntimeError):
            run.alike(lambda: given.copy().call(function), lambda: theirs.call(function))
        raise
    actual = run.device(lambda: theirs.call(function))
    if expected is mine.input and actual is not theirs.input:
        raise compare.WrongResult("the result is not the input")
    run.check(actual, expected)


def out(run: Run, sample: Sample) -> None:
    """out= of the right shape, with other strides, and without elements."""
    mine = Arguments.of(sample)
    expected = run.reference(lambda: mine.call(run.op))
    outputs = tensors_of(expected)
    if not outputs or not isinstance(expected, (torch.Tensor, tuple)):
        raise NotApplicable
    for make in (fitting_output, strided_output, empty_output):
        reference = given(expected, [make(tensor, "cpu") for tensor in outputs])
        run.reference(lambda given=reference: mine.call(run.op, out=given))
        if not compare.same(reference, expected):
            continue  # the CPU's own out= is wrong
        target = given(expected, [make(tensor, DEVICE) for tensor in outputs])
        theirs = run.on_device(mine)
        actual = run.device(lambda theirs=theirs, given=target: theirs.call(run.op, out=given))
        if actual is not None and list(map(id, tensors_of(actual))) != list(
            map(id, tensors_of(target))
        ):
            raise compare.WrongResult("the result is not what was given as out=")
        if make is strided_output:
            check_strides(target, reference)
        run.check_call(target, expected, theirs, mine)


def check_strides(actual: Any, expected: Any) -> None:
    """Check that an output that fits keeps its strides, if it does on the CPU."""
    for one, other in zip(tensors_of(actual), tensors_of(expected), strict=True):
        if other.numel() and one.stride() != other.stride():
            raise compare.WrongResult(f"strides {one.stride()} of out=, expected {other.stride()}")


def given(expected: Any, tensors: list[torch.Tensor]) -> Any:
    """Return ``tensors`` in the form of out=: one tensor, or a tuple."""
    return tensors[0] if isinstance(expected, torch.Tensor) else tuple(tensors)


def fitting_output(like: torch.Tensor, device: str) -> torch.Tensor:
    return torch.zeros(like.shape, dtype=like.dtype, device=device)


def strided_output(like: torch.Tensor, device: str) -> torch.Tensor:
    whole = torch.zeros(2 * max(like.numel(), 1), dtype=like.dtype, device=device)
    strides = torch.empty(like.shape, device="meta").stride()
    return whole.as_strided(like.shape, [2 * stride for stride in strides])


def empty_output(like: torch.Tensor, device: str) -> torch.Tensor:
    return torch.empty(0, dtype=like.dtype, device=device)


def backward(run: Run, sample: Sample) -> None:
    """Gradients of all inputs that require one: for random cotangents, also of inputs with gaps,
    since some formulas depend on strides, and for the expanded cotangent of a sum."""
    plain = Arguments.of(sample).copy()  # its own tensors may have a history
    compare_gradients(run, sample, plain, random_like)
    with suppress(NotApplicable):
        compare_gradients(run, sample, with_gaps(sample).copy(), random_like)
    compare_gradients(run, sample, plain, ones_like)


def random_like(output: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(output.shape, dtype=output.dtype, generator=generator)


def ones_like(output: torch.Tensor, _: int = 0) -> torch.Tensor:
    """Return the cotangent that a sum has: all strides are 0."""
    return torch.ones((), dtype=output.dtype).expand(output.shape)


def compare_gradients(
    run: Run,
    sample: Sample,
    mine: Arguments,
    cotangent: Callable[[torch.Tensor, int], torch.Tensor],
) -> None:
    theirs = run.on_device(mine)
    expected = differentiable(run.reference(lambda: mine.call(run.op)), sample)
    if not expected:
        raise NotApplicable
    actual = differentiable(theirs.call(run.op), sample)
    cotangents = [cotangent(tensor, seed) for seed, tensor in enumerate(expected, start=1)]
    if [tensor.shape for tensor in actual] != [tensor.shape for tensor in expected]:
        raise compare.WrongResult("other outputs than the CPU's ask for gradients")
    on_device = [Mover()(tensor) for tensor in cotangents]
    gradients = run.reference(lambda: gradient(expected, mine, cotangents))

    def precise() -> tuple[torch.Tensor | None, ...]:
        double = mine.in_double()
        outputs = differentiable(double.call(run.op), sample)
        return gradient(outputs, double, [tensor.double() for tensor in cotangents])

    run.check(run.device(lambda: gradient(actual, theirs, on_device)), gradients, precise)


def differentiable(result: Any, sample: Sample) -> list[torch.Tensor]:
    """Return the outputs that can be differentiated."""
    return [t for t in tensors_of(sample.output_process_fn_grad(result)) if t.requires_grad]


def gradient(
    outputs: list[torch.Tensor], arguments: Arguments, cotangents: list[torch.Tensor]
) -> tuple[torch.Tensor | None, ...]:
    inputs = {id(tensor): tensor for tensor in arguments.tensors() if tensor.requires_grad}
    return torch.autograd.grad(
        outputs, list(inputs.values()), cotangents, allow_unused=True, retain_graph=True
    )


def autocast(run: Run, sample: Sample) -> None:
    """The plain call under autocast, compared with the CPU in full precision or under autocast."""
    mine = Arguments.of(sample)
    theirs = run.on_device(mine)
    expected = run.reference(lambda: mine.call(run.op))
    with torch.autocast(DEVICE, dtype=LOW_PRECISION), default_device(mine):
        actual = run.device(lambda: theirs.call(run.op))
    largest = max(
        (
            float(t.detach().abs().nan_to_num(0, 0, 0).max())
            for t in tensors_of(expected)
            if t.is_floating_point() and t.layout is torch.strided and t.numel()
        ),
        default=0.0,
    )
    tolerance = run.compared.get("tolerance", (0.05, 0.05 * max(largest, 1)))
    try:
        run.check(actual, expected, tolerance=tolerance, any_dtype=True)
    except compare.WrongResult:
        # If terms cancel, rounding errors remain, which are alike on both devices.
        with torch.autocast("cpu", dtype=LOW_PRECISION):
            expected = run.reference(lambda: mine.call(run.op))
        run.check(actual, expected, tolerance=(0.01, 0.01), any_dtype=True)
