"""Random choices for generators of statements, among the variables of a session."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from backend import computed_by_the_cpu
from fuzz.program import NAMES
from fuzz.session import Session
from support import supported_dtypes

T = TypeVar("T")
DTYPES = tuple(filter(computed_by_the_cpu, supported_dtypes()))


class Nothing(Exception):
    """No variable fits a statement."""


class Choice:
    """Random choices among the tensors of a session."""

    def __init__(self, seed: int, session: Session) -> None:
        self.random = random.Random(seed)
        self.session = session
        self.made = 0

    def new(self) -> str:
        """Return a name that no variable has had."""
        self.made += 1
        return f"v{self.made}"

    def one(self, *items: T) -> T:
        """Return one of the arguments."""
        return self.random.choice(items)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < probability

    def number(self, low: int, high: int) -> int:
        """Return an integer, both ends included."""
        return self.random.randint(low, high)

    @property
    def variables(self) -> dict[str, torch.Tensor]:
        """Return the current tensors, as on the CPU."""
        return {
            name: value
            for name, value in self.session.host.items()
            if NAMES.fullmatch(name) and isinstance(value, torch.Tensor)
        }

    def of(self, name: str) -> torch.Tensor:
        """Return a variable's tensor on the CPU."""
        value: torch.Tensor = self.session.host[name]
        return value

    def any(self, accepts: Callable[[torch.Tensor], bool] = lambda tensor: True) -> str:
        """Return a variable that ``accepts`` accepts; recent ones more often."""
        fitting = [name for name, tensor in self.variables.items() if accepts(tensor)]
        if not fitting:
            raise Nothing
        return fitting[int(len(fitting) * self.random.random() ** 0.6)]

    def on_same_device(self, name: str, accepts: Callable[[torch.Tensor], bool]) -> str:
        """Return an accepted variable on the same device, possibly the same one."""
        device = self.session.device[name].device
        fitting = [
            other
            for other, tensor in self.variables.items()
            if accepts(tensor) and self.session.device[other].device == device
        ]
        if not fitting:
            raise Nothing
        return self.random.choice(fitting)

    def broadcasting(self, name: str) -> str:
        """Return a variable on the same device whose shape fits that of another."""
        shape = self.of(name).shape
        return self.on_same_device(name, lambda tensor: fits(tensor.shape, shape))

    def dim(self, name: str) -> int:
        """Return a dimension of a variable, counted from either end."""
        dims = self.of(name).dim()
        if dims == 0:
            raise Nothing
        return self.number(-dims, dims - 1)

    def permutation(self, count: int) -> list[int]:
        """Return the numbers below ``count`` in some order."""
        return self.random.sample(range(count), count)


def is_writable(tensor: torch.Tensor) -> bool:
    """Whether writes are defined: no two elements share memory, or a dimension is expanded."""
    if any(
        stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True)
    ):
        return True
    stored = tensor.untyped_storage().nbytes() // tensor.itemsize
    places = torch.arange(stored).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return int(places.unique().numel()) == tensor.numel()


def is_output(tensor: torch.Tensor) -> bool:
    """Whether the tensor may be written to in any size.

    An empty view may begin beyond the end of its memory. If it grows, the memory between is not
    initialised.
    """
    return is_writable(tensor) and (tensor.numel() > 0 or tensor.storage_offset() == 0)


def is_apart(tensor: torch.Tensor) -> bool:
    """Whether no two elements share memory."""
    return is_writable(tensor) and 0 not in tensor.stride()


def fits(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes broadcast."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return all(first == second or 1 in (first, second) for first, second in pairs)


def is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def is_number(tensor: torch.Tensor) -> bool:
    """Whether arithmetic on the tensor is possible: its dtype is not bool."""
    return tensor.dtype is not torch.bool


def is_real(tensor: torch.Tensor) -> bool:
    """Whether the tensor's elements are ordered: they are not complex."""
    return not tensor.is_complex()


def is_whole(tensor: torch.Tensor) -> bool:
    """Whether the tensor has integers or bools."""
    return not tensor.is_floating_point() and not tensor.is_complex()


def has_dims(least: int) -> Callable[[torch.Tensor], bool]:
    """Return a test for a number of dimensions and at least one element."""
    return lambda tensor: tensor.dim() >= least and tensor.numel() > 0
