"""The definition of each operation in numpy and scipy, without the code under test.

Functions take float64, complex128, int64 or bool arrays and return the same type or bool. The
caller rounds once, to the element type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pytest
from kernels import layouts, tolerances

# Arrays of one of those types.
Values: TypeAlias = Any

BOOL = ("bool",)
INTEGERS = tolerances.INTEGERS
FLOATING = tolerances.FLOATING
COMPLEX = tolerances.COMPLEX
REAL = INTEGERS + FLOATING
NUMBERS = REAL + COMPLEX
ALL = BOOL + NUMBERS


def by_type(operations: Iterable[Operation]) -> list[Any]:
    """Parameters of a test: every operation with each of its element types."""
    return [pytest.param(op, dtype, id=f"{op}-{dtype}") for op in operations for dtype in op.dtypes]


def by_layout(operations: Iterable[Operation]) -> list[Any]:
    """The same with each layout; in the whole set of tests also with each of many shapes."""
    made: list[Any] = []
    for op in operations:
        for dtype in op.dtypes:
            cases: list[Any] = [(layout, str(layout), ()) for layout in layouts.ELEMENTWISE]
            cases += [
                (layouts.of_shape(shape), str(shape), (pytest.mark.full,))
                for shape in layouts.sizes(dtype)
                if op.large or shape != layouts.LARGE
            ]
            made += [
                pytest.param(op, dtype, layout, id=f"{op}-{dtype}-{name}", marks=marks)
                for layout, name, marks in cases
            ]
    return made


def _zero(*inputs: Values, **params: Any) -> float:
    return 0.0


@dataclass(frozen=True)
class Operation:
    """One operation of an elementwise family."""

    name: str
    compute: Callable[..., Values]
    dtypes: tuple[str, ...]
    # The range of random inputs. Special values are added if `specials`.
    domain: tuple[float, float] = (-4.0, 4.0)
    specials: bool = True
    to_bool: bool = False
    # Whether the oracle is fast enough for layouts.LARGE.
    large: bool = True
    # Whether 0 and -0 are different results.
    signed_zeros: bool = True
    # The magnitude of the terms whose difference is the result, for the tolerance.
    scale: Callable[..., Any] = _zero
    # Arguments of the device's function in addition to the arrays.
    params: dict[str, Any] = field(default_factory=dict)
    # The same for integers.
    integer_params: dict[str, Any] = field(default_factory=dict)

    def parameters(self, dtype: str) -> dict[str, Any]:
        return self.integer_params if dtype in INTEGERS + BOOL else self.params

    def __str__(self) -> str:
        return self.name


def wide(values: Values) -> Values:
    """The values in the type of the oracle's calculations."""
    if values.dtype.kind == "b":
        return values
    if np.iscomplexobj(values):
        return values.astype(np.complex128)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    return values.astype(np.float64)


def operation(
    name: str, compute: Callable[..., Values], dtypes: tuple[str, ...] = FLOATING, **more: Any
) -> Operation:
    """An operation, by default on floating-point numbers."""
    return Operation(name, compute, dtypes, **more)


SMOOTH = FLOATING + COMPLEX
# Keyword arguments for operations whose inputs may be larger.
ANYWHERE: dict[str, Any] = {"domain": (-20.0, 20.0)}


def _special(op: Operation, dtype: np.dtype[Any]) -> list[Any]:
    if not op.specials or dtype.kind == "b":
        return []
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [info.min, info.max, info.max - 1, 0, 1, 2]
    if dtype.kind == "c":
        # For other operations, the parts of infinite complex results are not specified.
        return [0, complex(np.nan, 1), complex(1, np.inf), complex(np.inf, np.nan)] * op.to_bool
    tiny = tolerances.smallest_normal(dtype)
    simple = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5]
    return [*simple, tiny, -tiny, tiny / 4, tolerances.largest(dtype)]


def inputs(
    op: Operation, dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator
) -> Values:
    """Random elements of the operation's domain, including special values."""
    low, high = op.domain
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        values = rng.integers(max(-20, np.iinfo(dtype).min), 20, shape).astype(dtype)
    elif dtype.kind == "c":
        real, imaginary = rng.uniform(low, high, (2, *shape))
        values = np.asarray(real + 1j * imaginary).astype(dtype)
    else:
        values = np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    chosen = _special(op, dtype)
    if values.size >= 4 * len(chosen) > 0:
        for order in (chosen, chosen[::-1]):
            places = rng.choice(values.size, len(chosen), replace=False)
            values.reshape(-1)[places] = np.asarray(order).astype(dtype)
    return values
