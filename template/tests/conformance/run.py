"""One run of an operator on both devices: its comparisons and its outcome."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from backend import DEVICE, backend
from conformance import compare
from conformance.routes import Recorder
from conformance.samples import Arguments, tensors_of
from support import FLOATING, INTEGERS, avoidable, forget_failures, supported_dtypes

NARROW = (torch.float16, torch.bfloat16)

COMPARE_OPTIONS = ("values", "any_dtype", "tolerance")
"""The declared options that compare.check takes."""

Function = Callable[..., Any]


class NotApplicable(Exception):
    """A sample does not apply to an aspect, for example because the CPU refuses it."""


def lacking(error: Exception) -> str:
    """Return the unsupported dtype that an error names, or an empty string."""
    named = re.match(rf"{DEVICE} does not support torch\.(\w+)", str(error))
    return named[1] if named and getattr(torch, named[1]) not in supported_dtypes() else ""


def left_out(error: Exception) -> str:
    """Return the dtype that an operator could not compute with, if it is one of the default dtypes.

    For others, such as complex128, known.toml declares the operators.
    """
    name = lacking(error)
    usual = (*FLOATING, *INTEGERS, torch.bool, torch.complex64)
    return name if name and getattr(torch, name) in usual else ""


@dataclass
class Outcome:
    """The outcome of one test: the number of samples, the failures, and the route."""

    compared: int = 0
    problems: list[str] = field(default_factory=list)
    raised: int = 0
    skipped: str = "no sample applies"
    route: str = ""
    extra: float | None = None
    fallbacks: list[str] = field(default_factory=list)
    avoidable: list[str] = field(default_factory=list)
    """The fallbacks that are not for dtypes that the project was generated without."""

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
        self.avoidable: set[str] = set()
        self.references: list[Function] = []
        self.recorder: Recorder | None = None
        self.again: Function | None = None
        self.extra: float | None = None  # memory above arguments and results, in multiples of these

    def reference(self, call: Function) -> Any:
        """Run ``call`` on CPU tensors. Raises NotApplicable if the CPU refuses it."""
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
        self.avoidable.update(avoidable(fallbacks))
        if self.recorder is None:
            self.again = call
        return result

    def alike(self, mine: Function, theirs: Function, message: str = "") -> tuple[Any, Any] | None:
        """Return both devices' results, or None if both raise the same exception.

        The message of the device must match ``message`` or equal that of the CPU.
        """
        try:
            expected = self.reference(mine)
        except NotApplicable as reason:
            if reason.__cause__ is None or "not implemented for" in str(reason.__cause__):
                raise  # the CPU lacks a kernel or dtype, which is no refusal
            self.check_refusal(theirs, reason.__cause__, message)
            return None
        return self.device(theirs), expected

    def check_refusal(self, theirs: Function, refusal: BaseException, message: str) -> None:
        """Call ``theirs``, which must raise ``refusal``, the exception of the CPU."""
        wanted = f"{type(refusal).__name__}: {refusal}"
        try:
            theirs()
            backend.synchronize()
        except Exception as error:
            if missing := lacking(error):
                raise NotApplicable(f"asks for {missing}, which was left out, first") from error
            said = str(error).replace(DEVICE, "cpu")
            if type(error) is not type(refusal) or not (
                re.search(message, str(error)) or said == str(refusal)
            ):
                raise compare.WrongResult(
                    f"raised {type(error).__name__}: {error}, expected {wanted}"
                ) from error
        else:
            raise compare.WrongResult(f"nothing raised, expected {wanted}")
        finally:
            forget_failures()

    def check(
        self, actual: Any, expected: Any, precise: Function | None = None, **options: Any
    ) -> None:
        """Compare a result. Of random results, compare devices, dtypes and shapes only.

        A result of a narrow dtype may equal that of ``precise``, the call in double precision,
        because the CPU may round more often.
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

    def check_call(self, actual: Any, expected: Any, theirs: Arguments, mine: Arguments) -> None:
        """Compare the results of one call. With ``picks``, indices may pick any of equal values."""
        if "picks" in self.compared:
            position = self.compared["picks"]
            actual, expected = picked(actual, theirs, position), picked(expected, mine, position)
        self.check(actual, expected, lambda: mine.in_double().call(self.op))

    def is_random(self) -> bool:
        """Whether the sample's reference draws random numbers.

        A recorder does not run with every call, because PyTorch's composites treat conjugate bits
        differently under a dispatch mode.
        """
        with Recorder() as recorder:
            for call in self.references:
                call()
        return recorder.is_random()

    def finish_sample(self) -> None:
        """Record the route of the first sample that was compared, with one more call.

        Acknowledges failures, so that they are not raised in the next sample.
        """
        self.references.clear()
        if self.recorder is None and self.again is not None:
            with Recorder() as recorder, suppress(Exception):
                self.again()
                backend.synchronize()  # an index that is out of range fails only here
            self.recorder = recorder
        forget_failures()


def picked(result: Any, mine: Arguments, position: int) -> Any:
    """Return the values of (values, indices), and those that the indices pick from the input.

    A result may be the indices alone. ``position``: of the dimension, after the input.
    """
    *values, indices = [result] if isinstance(result, torch.Tensor) else result
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
