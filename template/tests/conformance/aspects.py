"""The aspects of an operator that are compared with the CPU, and one run over its samples."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch
from backend import DEVICE, backend
from conformance import compare
from conformance.routes import UNSUPPORTED, Recorder, route
from conformance.samples import Arguments, Sample, samples, tensors_of
from support import FLOATING, INTEGERS, supported_dtypes

LOW_PRECISION = torch.bfloat16
"""What autocast casts to."""

NARROW = (torch.float16, torch.bfloat16)

COMPARE_OPTIONS = ("values", "any_dtype", "tolerance")
"""The declared options that compare.check takes."""

Function = Callable[..., Any]


class NotApplicable(Exception):
    """A sample says nothing about an aspect: the CPU refuses it as well, or there is no output."""


@dataclass
class Outcome:
    """What one test saw: how many samples, which failed, and the route that they took."""

    compared: int = 0
    problems: list[str] = field(default_factory=list)
    raised: int = 0
    skipped: str = "no sample applies"
    route: str = ""
    fallbacks: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """pass, raised, wrong, or skip where no sample applies."""
        if self.problems:
            return "raised" if self.raised == len(self.problems) else "wrong"
        return "pass" if self.compared else "skip"


class Run:
    """One operator, dtype and aspect."""

    def __init__(self, op: Any, dtype: torch.dtype, compared: dict[str, Any]) -> None:
        self.op = op
        self.dtype = dtype
        self.compared = compared
        self.fallbacks: set[str] = set()
        self.references: list[Function] = []
        self.recorder: Recorder | None = None
        self.again: Function | None = None

    def reference(self, call: Function) -> Any:
        """Run ``call``, which concerns CPU tensors only; what the CPU refuses is not compared."""
        try:
            result = call()
        except Exception as error:
            raise NotApplicable from error
        for tensor in tensors_of(result):
            if tensor.dtype not in supported_dtypes():
                raise NotApplicable(f"the result is {tensor.dtype}, which the backend lacks")
        self.references.append(call)
        return result

    def on_device(self, mine: Arguments) -> Arguments:
        """Return the arguments for the device."""
        return mine.on_device(input_only=self.compared.get("input_only", False))

    def device(self, call: Function) -> Any:
        """Run ``call`` on the device and note its route."""
        with backend.count_fallbacks() as fallbacks:
            result = call()
        self.fallbacks.update(fallbacks)
        if self.recorder is None:
            self.again = call
        return result

    def check(
        self, actual: Any, expected: Any, precise: Function | None = None, **options: Any
    ) -> None:
        """Compare a result; of what a generator drew, devices, dtypes and shapes only.

        A narrow type's result may agree with ``precise``, what comes out in double precision,
        where the CPU's rounds more often.
        """
        options = {
            key: value for key, value in self.compared.items() if key in COMPARE_OPTIONS
        } | options
        try:
            compare.check(actual, expected, **options)
        except compare.WrongResult:
            if self.is_random():
                compare.check(actual, expected, **{**options, "values": False})
            elif not (precise and self.dtype in NARROW) or not compare.is_exact(
                actual, expected, precise, options
            ):
                raise

    def is_random(self) -> bool:
        """Whether the sample's reference draws numbers: only then a recorder looks at it.

        A recorder is not always there, as PyTorch's composites treat conjugate bits otherwise
        under a dispatch mode.
        """
        with Recorder() as recorder:
            for call in self.references:
                call()
        return recorder.is_random()

    def finish_sample(self) -> None:
        """Record the route of the first sample that was compared, with one more call."""
        self.references.clear()
        if self.recorder is None and self.again is not None:
            with Recorder() as recorder, suppress(Exception):
                self.again()
            self.recorder = recorder


def forward(run: Run, sample: Sample) -> None:
    """The plain call; arguments that the operator changes must change alike."""
    call_and_compare(run, Arguments.of(sample), run.op)


def noncontiguous(run: Run, sample: Sample) -> None:
    """The plain call on tensors with gaps in their memory."""
    try:
        mine = Arguments.of(sample.noncontiguous())
    except RuntimeError as error:
        raise NotApplicable from error  # layouts other than strided have no such thing
    call_and_compare(run, mine, run.op)


def call_and_compare(run: Run, mine: Arguments, function: Function) -> None:
    theirs = run.on_device(mine)
    expected = run.reference(lambda: mine.call(function))
    with default_device(mine):
        actual = run.device(lambda: theirs.call(function))
    if "picks" in run.compared:
        actual, expected = picked(run, actual, theirs), picked(run, expected, mine)
    run.check(actual, expected, lambda: mine.in_double().call(function))
    for one, other in zip(theirs.tensors(), mine.tensors(), strict=True):
        if one.layout is torch.strided and one.device.type == DEVICE:
            run.check(one, other)


def picked(run: Run, result: Any, mine: Arguments) -> Any:
    """Return the values of (values, indices), and those that the indices pick from the input.

    Of equal values, indices may pick any. A result may be the indices alone.
    """
    *values, indices = [result] if isinstance(result, torch.Tensor) else result
    position = run.compared["picks"]
    dim = mine.kwargs.get("dim", mine.args[position] if len(mine.args) > position else -1)
    if mine.input.dim() == 0:
        return *values, mine.input.expand(indices.shape)
    shape = indices.shape
    if indices.dim() < mine.input.dim():
        indices = indices.unsqueeze(dim)
    places = indices.sort(dim).values
    if places.diff(dim=dim).eq(0).any():
        raise compare.WrongResult("two results are of the same place")
    return *values, mine.input.gather(dim, indices).reshape(shape)


def default_device(arguments: Arguments) -> AbstractContextManager[Any]:
    """A factory that is told no device asks for the default one."""
    return torch.device(DEVICE) if arguments.name_no_device() else nullcontext()


def in_place(run: Run, sample: Sample) -> None:
    """The variant that changes its input, which it must return."""
    if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
        raise NotApplicable
    mine = Arguments.of(sample).copy()
    theirs = run.on_device(Arguments.of(sample))
    function = run.op.get_inplace()
    expected = run.reference(lambda: mine.call(function))
    actual = run.device(lambda: theirs.call(function))
    if expected is mine.input and actual is not theirs.input:
        raise compare.WrongResult("the result is not the input")
    run.check(actual, expected)


def out(run: Run, sample: Sample) -> None:
    """out= of the right shape, of other strides, and of no elements."""
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
        if "picks" in run.compared:
            run.check(picked(run, target, theirs), picked(run, expected, mine))
        else:
            run.check(target, expected, lambda: mine.in_double().call(run.op))


def check_strides(actual: Any, expected: Any) -> None:
    """An output that fits keeps its strides, where it does on the CPU."""
    for one, other in zip(tensors_of(actual), tensors_of(expected), strict=True):
        if other.numel() and one.stride() != other.stride():
            raise compare.WrongResult(f"strides {one.stride()} of out=, expected {other.stride()}")


def given(expected: Any, tensors: list[torch.Tensor]) -> Any:
    """Return ``tensors`` as out= takes them: one, or a tuple."""
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
    """Gradients of everything that asks for one, for the same random cotangents."""
    mine = Arguments.of(sample).copy()  # a sample's own tensors may have a history
    theirs = run.on_device(mine)
    expected = differentiable(run.reference(lambda: mine.call(run.op)), sample)
    if not expected:
        raise NotApplicable
    actual = differentiable(theirs.call(run.op), sample)
    generator = torch.Generator().manual_seed(1)
    cotangents = [
        torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator) for tensor in expected
    ]
    if [tensor.shape for tensor in actual] != [tensor.shape for tensor in expected]:
        raise compare.WrongResult("other outputs than the CPU's ask for gradients")
    on_device = [tensor.to(DEVICE) for tensor in cotangents]
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
    """The plain call under autocast, compared with the CPU's full precision, or with the CPU under its own."""
    mine = Arguments.of(sample)
    theirs = run.on_device(mine)
    expected = run.reference(lambda: mine.call(run.op))
    with torch.autocast(DEVICE, dtype=LOW_PRECISION), default_device(mine):
        actual = run.device(lambda: theirs.call(run.op))
    largest = max(
        (
            float(t.detach().abs().nan_to_num(0, 0, 0).max())
            for t in tensors_of(expected)
            if t.is_floating_point() and t.numel()
        ),
        default=0.0,
    )
    tolerance = run.compared.get("tolerance", (0.05, 0.05 * max(largest, 1)))
    try:
        run.check(actual, expected, tolerance=tolerance, any_dtype=True)
    except compare.WrongResult:
        # Where terms cancel, little is left but their rounding, which both do alike.
        with torch.autocast("cpu", dtype=LOW_PRECISION):
            expected = run.reference(lambda: mine.call(run.op))
        run.check(actual, expected, tolerance=(0.01, 0.01), any_dtype=True)


ASPECTS: dict[str, Callable[[Run, Sample], None]] = {
    "forward": forward,
    "noncontiguous": noncontiguous,
    "out": out,
    "in_place": in_place,
    "backward": backward,
    "autocast": autocast,
}
"""By name, in the order in which they are reported."""


def applies(aspect: str, op: Any, dtype: torch.dtype) -> bool:
    """Whether the operator has this aspect for a dtype, as far as PyTorch's own table says."""
    if aspect == "out":
        return bool(op.supports_out)
    if aspect == "in_place":
        return op.get_inplace() is not None
    if aspect == "backward":
        return dtype in op.supported_backward_dtypes("cpu")
    if aspect == "autocast":
        offered = getattr(backend, "get_amp_supported_dtype", list)()
        return dtype is torch.float32 and LOW_PRECISION in offered
    return True


def compare_with_cpu(
    aspect: str, op: Any, dtype: torch.dtype, compared: dict[str, Any], limit: int | None = None
) -> Outcome:
    """Compare one aspect over the operator's samples, all of them or the first ``limit``.

    The function that does it bears the operator's name: where the interpreter dies, the stack that
    pytest prints says whose fault it is.
    """
    code = explore.__code__.replace(co_name=f"{aspect} of {op.full_name} {dtype}")
    return FunctionType(code, globals())(aspect, op, dtype, compared, limit)


def left_out(error: Exception) -> str:
    """Return the dtype that an operator could not compute with, if the default answers have it.

    Where they have not, as complex128, known.toml says which operators are concerned.
    """
    named = re.match(rf"{DEVICE} does not support torch\.(\w+)", str(error))
    dtype = getattr(torch, named[1]) if named else None
    usual = (*FLOATING, *INTEGERS, torch.bool, torch.complex64)
    return named[1] if named and dtype in usual and dtype not in supported_dtypes() else ""


def explore(
    aspect: str, op: Any, dtype: torch.dtype, compared: dict[str, Any], limit: int | None
) -> Outcome:
    run = Run(op, dtype, compared)
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = samples(op, dtype, gradients=aspect == "backward")
        for index, sample in enumerate(itertools.islice(inputs, limit)):
            try:
                ASPECTS[aspect](run, sample)
            except NotApplicable as reason:
                outcome.skipped = str(reason) or outcome.skipped
                continue
            except compare.WrongResult as error:
                outcome.problems.append(f"sample {index}: {error}\n  {sample.summary()}")
            except Exception as error:
                if missing := left_out(error):
                    outcome.skipped = f"computes with {missing}, which was left out"
                    continue
                outcome.raised += 1
                outcome.problems.append(
                    f"sample {index}: raised {type(error).__name__}: {error}\n  {sample.summary()}"
                )
            finally:
                run.finish_sample()
            outcome.compared += 1
    outcome.fallbacks = sorted(run.fallbacks)
    if run.recorder is None:
        outcome.route = UNSUPPORTED if outcome.compared else ""
    else:
        outcome.route = route(run.recorder, outcome.fallbacks, several=aspect == "backward")
    return outcome
