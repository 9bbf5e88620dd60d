"""Layouts of arrays in memory: every layout that a kernel must support, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    """The positions of an array's elements in its storage. All numbers are in elements."""

    offset: int
    strides: tuple[int, ...]
    extent: int

    @classmethod
    def of(cls, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Placement:
        """The placement with these strides, in the smallest storage."""
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        return cls(offset, strides, offset + max(last, 0) + 1)


Placer = Callable[[tuple[int, ...]], Placement]


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))


def contiguous(shape: tuple[int, ...]) -> Placement:
    """Row-major, from the first byte of an allocation on."""
    return Placement.of(shape, _row_major(shape))


def offset(shape: tuple[int, ...]) -> Placement:
    """Contiguous, but aligned only to an element."""
    return Placement.of(shape, _row_major(shape), offset=3)


def transposed(shape: tuple[int, ...]) -> Placement:
    """Column-major."""
    return Placement.of(shape, tuple(reversed(_row_major(tuple(reversed(shape))))))


def channels_last(shape: tuple[int, ...]) -> Placement:
    """All channels of a position, then the next position; contiguous without channels."""
    if len(shape) < 3:
        return contiguous(shape)
    batch, channels, *rest = shape
    moved = _row_major((batch, *rest, channels))
    return Placement.of(shape, (moved[0], moved[-1], *moved[1:-1]))


def wide_columns(shape: tuple[int, ...]) -> Placement:
    """A batch of column-major matrices with padded columns; contiguous without a batch."""
    if len(shape) != 3:
        return contiguous(shape)
    _, rows, columns = shape
    return Placement.of(shape, ((rows + 3) * columns, 1, rows + 3), offset=2)


def stepped(shape: tuple[int, ...]) -> Placement:
    """Every third element of padded rows."""
    padded = (*shape[:-1], shape[-1] + 2) if shape else ()
    return Placement.of(shape, tuple(3 * stride for stride in _row_major(padded)), offset=1)


def expanded_rows(shape: tuple[int, ...]) -> Placement:
    """One row, repeated."""
    return Placement.of(shape, (0, *_row_major(shape)[1:]))


def expanded_columns(shape: tuple[int, ...]) -> Placement:
    """One column, repeated."""
    return Placement.of(shape, (*_row_major(shape[:-1]), 0))


def one_element(shape: tuple[int, ...]) -> Placement:
    """A single element, repeated."""
    return Placement.of(shape, (0,) * len(shape))


def shuffled(shape: tuple[int, ...]) -> Placement:
    """Without gaps, with the dimensions in an order that no single stride covers."""
    order = sorted(range(len(shape)), key=lambda dim: (dim % 3, -dim))
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return Placement.of(shape, tuple(strides))


@dataclass(frozen=True)
class Layout:
    """One arrangement of an operation's arrays. Input i uses inputs[i % len(inputs)]."""

    name: str
    shape: tuple[int, ...]
    out: Placer
    inputs: tuple[Placer, ...]
    in_place: bool = False

    def __str__(self) -> str:
        return self.name


MATRIX = (17, 33)
DEEP = (1, 2, 1, 3, 1, 1, 2, 1, 1, 5, 1, 2, 1, 1, 1, 3)
assert len(DEEP) == 16

CONTIGUOUS = Layout("contiguous", MATRIX, contiguous, (contiguous,))

ELEMENTWISE = [
    CONTIGUOUS,
    Layout("offset", MATRIX, offset, (offset, contiguous)),
    Layout("transposed", MATRIX, contiguous, (transposed, contiguous)),
    Layout("transposed_out", MATRIX, transposed, (contiguous, transposed)),
    Layout("stepped", MATRIX, stepped, (stepped, offset)),
    Layout("expanded", MATRIX, contiguous, (expanded_rows, expanded_columns, one_element)),
    Layout("rank0", (), contiguous, (contiguous,)),
    Layout("rank16", DEEP, shuffled, (contiguous, shuffled)),
    Layout("in_place", MATRIX, stepped, (stepped, contiguous), in_place=True),
    Layout("in_place_contiguous", MATRIX, contiguous, (contiguous,), in_place=True),
]

# Shapes with lines: short and long ones, also in the middle dimension.
ALONG: list[tuple[tuple[int, ...], int]] = [
    ((17, 33), 1),
    ((17, 33), 0),
    ((4, 5, 6, 7), 1),
    ((4, 5, 6, 7), 2),
    ((1,), 0),
    ((3, 1), 1),
    ((3, 2050), 1),
    ((2050, 3), 0),
    (DEEP, 9),
]

# Sizes with remainders for every plausible vector width and block size.
SHAPES: list[tuple[int, ...]] = [(1,), (31,), (33,), (1023,), (1025,), (3, 5, 7)]
# More rows than a grid of blocks may have in one dimension.
LARGE = (65537, 64)


def sizes(dtype: str) -> list[tuple[int, ...]]:
    """The shapes to test with this type. With the large one, the oracle takes seconds."""
    return [*SHAPES, LARGE] if dtype == "float32" else SHAPES


def of_shape(shape: tuple[int, ...]) -> Layout:
    return Layout("contiguous", shape, contiguous, (contiguous,))
