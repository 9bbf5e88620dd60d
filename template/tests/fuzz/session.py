"""Runs statements on both sides and compares their results.

A session does not wait for the devices after every statement. It enqueues a copy of each result,
and compares many copies at once. After the copy it enqueues the CPU's values to the device, so that
rounding errors do not add up, and operators that are not continuous get the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from backend import DEVICE, backend
from fuzz.program import Program, Statement, namespace
from support import supported_dtypes

LACKS = re.compile("not implemented for|does not support bool dtypes on CPU")
"""Matches errors of the CPU for operators without a kernel."""

FLOATS = re.compile(r"torch\.(float16|bfloat16|float32)\b")
ROUNDINGS = 8
"""The tolerance, in units in the last place of the inputs."""


class Divergence(AssertionError):
    """The devices differ from the CPU."""

    def __init__(self, statement: Statement, what: str) -> None:
        super().__init__(f"{statement.code}\n{what}")
        self.statement = statement
        self.what = what


@dataclass
class Copy:
    """A result that is being copied from the device, and the CPU's result."""

    statement: Statement
    name: str
    actual: torch.Tensor
    expected: torch.Tensor
    scale: float


NOTHING = Statement("")
"""A placeholder for a missing statement."""


class Session:
    """The variables of a running program, once on the CPU and once on the devices."""

    def __init__(
        self, batch: int = 1, is_known: Callable[[Divergence], bool] = lambda found: False
    ) -> None:
        other = 1 if backend.device_count() > 1 else 0
        self.host = namespace("cpu", "cpu")
        self.device = namespace(f"{DEVICE}:0", f"{DEVICE}:{other}")
        self.batch = batch
        self.is_known = is_known
        self.copies: list[Copy] = []

    def execute(self, statement: Statement) -> None:
        """Run one statement. A divergence may belong to an earlier statement."""
        scale = self.scale(statement)
        code = compile(statement.code, f"<{statement.code}>", "exec")
        refusal = attempt(code, self.host)
        if isinstance(refusal, NameError):
            return  # the statement that made the variable was left out
        problem = attempt(code, self.device)
        if is_not_compared(refusal, problem):
            self.forget(statement)
            return
        if type(problem) is not type(refusal):
            self.report(statement, f"gave {message_of(problem)}, expected {message_of(refusal)}")
            return
        if refusal is not None:
            return
        for name in statement.targets or statement.writes:
            if different := self.different_description(statement, name):
                self.report(statement, f"{name} {different}")
                return
        for name in statement.targets or statement.writes:
            self.queue(statement, name, scale)
        if len(self.copies) >= self.batch:
            self.compare()

    def report(self, statement: Statement, what: str) -> None:
        """Raise a divergence, or continue without the statement if it is known."""
        found = Divergence(statement, what)
        if not self.is_known(found):
            raise found
        self.forget(statement)

    def forget(self, statement: Statement) -> None:
        """Drop the targets of a statement, and restore the CPU's values of what it changed."""
        for name in statement.writes:
            mine, theirs = self.device.get(name), self.host.get(name)
            if isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor):
                alike = description(self.device, mine, []) == description(self.host, theirs, [])
                if alike and mine.stride() == theirs.stride():
                    self.queue(NOTHING, name, 0.0)
                    self.copies.pop()
                else:
                    self.drop(name)
        for name in statement.targets:
            self.drop(name)

    def drop(self, name: str) -> None:
        self.host.pop(name, None)
        self.device.pop(name, None)

    def scale(self, statement: Statement) -> float:
        """Return the largest finite number among the variables that a statement names."""
        if statement.terms == 0:
            return 0.0
        largest = 0.0
        for name in statement.names:
            value = self.host.get(name)
            if isinstance(value, torch.Tensor) and value.numel():
                size = value.detach().to(torch.complex128).abs()
                largest = max(
                    largest,
                    float(size[size.isfinite()].amax()) if bool(size.isfinite().any()) else 0.0,
                )
        if "grad(" in statement.code:  # gradients of functions whose values are about 1 cancel out
            largest = max(largest, 1.0)
        return largest * (1.0 if statement.terms == 1 else statement.terms * max(largest, 1.0))

    def different_description(self, statement: Statement, name: str) -> str:
        """Compare properties that need no wait. Return the difference, or an empty string."""
        mine, theirs = self.device.get(name), self.host.get(name)
        if not isinstance(mine, torch.Tensor) or not isinstance(theirs, torch.Tensor):
            return "" if str(mine) == str(theirs) else f"is {mine}, expected {theirs}"
        have = description(self.device, mine, statement.names)
        want = description(self.host, theirs, statement.names)
        if have != want:
            return f"is {have}, expected {want}"
        converts = self.converts(statement)
        have, want = strides(mine, all=converts), strides(theirs, all=converts)
        if have == want:
            return ""
        return f"has strides {have}, expected {want}" + ", of operands of several dtypes" * converts

    def converts(self, statement: Statement) -> bool:
        """Whether an operand or the result is of a dtype that the operator does not compute in."""
        values = {name: self.host.get(name) for name in (*statement.names, *statement.targets)}
        dtypes = {
            value.dtype
            for name, value in values.items()
            if isinstance(value, torch.Tensor)
            and not (name in statement.targets and value.dtype == torch.bool)
        }
        return len(dtypes) > 1

    def queue(self, statement: Statement, name: str, scale: float) -> None:
        """Enqueue a copy of a variable's memory to compare, and then one of the CPU's values."""
        theirs = self.host.get(name)
        if not isinstance(theirs, torch.Tensor):
            return
        mine, expected = block(self.device[name]), block(theirs)
        if mine.shape != expected.shape:  # one allocation is larger than its tensors
            shared = min(mine.numel(), expected.numel())
            mine, expected = mine[:shared], expected[:shared]
        queued = mine.to("cpu", non_blocking=True)
        self.copies.append(Copy(statement, name, queued, expected.clone(), scale))
        mine.copy_(expected.pin_memory(DEVICE), non_blocking=True)

    def compare(self) -> None:
        """Wait, and compare all enqueued copies."""
        copies, self.copies = self.copies, []
        try:
            wait()
        except RuntimeError as error:
            raise Divergence(
                copies[-1].statement if copies else NOTHING, f"later gave {message_of(error)}"
            ) from None
        for copy in copies:
            problem = difference(copy.actual, copy.expected, copy.statement, copy.scale)
            found = Divergence(copy.statement, f"{copy.name} {problem}")
            if problem and not self.is_known(found):
                raise found


def attempt(code: Any, names: dict[str, Any]) -> Exception | None:
    """Run a statement, and return its exception."""
    try:
        exec(code, names)
    except Exception as error:
        return error
    return None


def is_not_compared(refusal: Exception | None, problem: Exception | None) -> bool:
    """Whether a statement is not compared: the CPU lacks a kernel, or the device a dtype."""
    named = re.match(rf"{DEVICE} does not support torch\.(\w+)", str(problem))
    if named and getattr(torch, named[1]) not in supported_dtypes():
        return True
    return refusal is not None and bool(LACKS.search(str(refusal)))


def message_of(error: Exception | None) -> str:
    return "a result" if error is None else f"{type(error).__name__}: {error}".splitlines()[0]


def block(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole storage of a tensor, without conjugate and negative bits."""
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return whole.set_(tensor.untyped_storage())


def description(names: dict[str, Any], tensor: torch.Tensor, variables: list[str]) -> str:
    """Describe a tensor, except its elements and strides: shape, dtype, bits and aliases."""
    words = [str(tuple(tensor.shape)), str(tensor.dtype)]
    storage = tensor.untyped_storage()._cdata
    for name in variables:
        other = names.get(name)
        if (
            isinstance(other, torch.Tensor)
            and other is not tensor
            and other.untyped_storage()._cdata == storage
        ):
            place = f" at {tensor.storage_offset()}" if tensor.numel() else ""
            words.append(f"of the memory of {name}{place}")
    words += ["conj"] * tensor.is_conj() + ["neg"] * tensor.is_neg()
    return ", ".join(words)


def strides(tensor: torch.Tensor, *, all: bool) -> list[int]:
    """Return the strides of all dimensions, or of those with more than one element."""
    if tensor.numel() == 0:
        return []
    pairs = zip(tensor.stride(), tensor.shape, strict=True)
    return [stride for stride, size in pairs if all or size > 1]


def difference(
    actual: torch.Tensor, expected: torch.Tensor, statement: Statement, scale: float
) -> str:
    """Return how two tensors of one dtype differ, or an empty string.

    If a statement converts to a narrower dtype, its precision is that of this dtype. Subnormal
    numbers may be flushed to zero.
    """
    if expected.dtype is torch.complex32:  # which the CPU cannot compare
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if torch.equal(actual, expected):
        return ""
    apart = ~((actual == expected) | ((actual != actual) & (expected != expected)))
    if statement.terms and (expected.is_floating_point() or expected.is_complex()):
        limits = torch.finfo(expected.dtype)
        narrow = [torch.finfo(getattr(torch, name)).eps for name in FLOATS.findall(statement.code)]
        wide = torch.complex128 if expected.is_complex() else torch.float64
        one, other = (bounded(tensor.to(wide), limits.max) for tensor in (actual, expected))
        allowed = ROUNDINGS * max(limits.eps, *narrow, 0.0) * (other.abs() + scale) + limits.tiny
        apart &= ~((one - other).abs() <= allowed)
    if not apart.any():
        return ""
    place = int(apart.flatten().nonzero()[0])
    return (
        f"differs in {int(apart.sum())} of {apart.numel()} numbers, first in number {place} of its memory:"
        f" {actual.flatten()[place].item()}, expected {expected.flatten()[place].item()}"
    )


def bounded(tensor: torch.Tensor, largest: float) -> torch.Tensor:
    """Replace infinities by the largest number, because only one side may round to infinity."""
    if tensor.is_complex():
        return torch.complex(
            tensor.real.clamp(-largest, largest), tensor.imag.clamp(-largest, largest)
        )
    return tensor.clamp(-largest, largest)


def divergence(
    program: Program, is_known: Callable[[Divergence], bool] = lambda found: False
) -> Divergence | None:
    """Run a program from its beginning and return the first divergence that is not known."""
    session = Session(program.batch, is_known)
    try:
        for statement in program.statements:
            session.execute(statement)
        session.compare()
    except Divergence as found:
        return found
    finally:
        reset()
    return None


def wait() -> None:
    """Wait for all work of the devices."""
    for index in range(backend.device_count()):
        backend.synchronize(index)


def reset() -> None:
    """Wait for the devices, and make the default streams current again."""
    with suppress(RuntimeError):  # of a program that is known to fail
        wait()
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
