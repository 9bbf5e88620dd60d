"""Convolutions and their gradients, in one to three dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.harness import DTYPES, Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

# What out, a and b of each pass are.
PASSES = {
    "forward": ("output", "input", "weight"),
    "input_grad": ("input", "output", "weight"),
    "weight_grad": ("weight", "output", "input"),
}


@dataclass(frozen=True)
class Shape:
    """One convolution. Channels are those of one group."""

    batch: int
    groups: int
    channels: tuple[int, int]
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def out_size(self) -> tuple[int, ...]:
        return tuple(
            (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, stride, padding, dilation in zip(
                self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )

    @property
    def input(self) -> tuple[int, ...]:
        return (self.batch, self.groups * self.channels[0], *self.size)

    @property
    def weight(self) -> tuple[int, ...]:
        return (self.groups * self.channels[1], self.channels[0], *self.kernel)

    @property
    def output(self) -> tuple[int, ...]:
        return (self.batch, self.groups * self.channels[1], *self.out_size)

    def of(self, op: str) -> list[tuple[int, ...]]:
        return [getattr(self, name) for name in PASSES[op]]

    def __str__(self) -> str:
        return f"{self.batch}x{self.groups}x{self.channels}-{self.size}-{self.kernel}".replace(
            " ", ""
        ) + "-".join(
            ["", *("".join(map(str, x)) for x in (self.stride, self.padding, self.dilation))]
        )


SHAPES = [
    Shape(2, 1, (3, 4), (9,), (3,), (1,), (1,), (1,)),
    Shape(1, 2, (2, 3), (11,), (4,), (3,), (2,), (2,)),
    Shape(2, 1, (3, 5), (7, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    Shape(3, 1, (4, 6), (5, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    Shape(2, 1, (4, 6), (5, 7), (1, 1), (2, 2), (0, 0), (1, 1)),
    Shape(2, 2, (2, 2), (8, 9), (3, 2), (2, 3), (1, 0), (2, 1)),
    Shape(2, 4, (1, 1), (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    Shape(2, 3, (1, 2), (7, 8), (3, 3), (2, 2), (2, 1), (1, 2)),
    Shape(2, 1, (1, 8), (6, 6), (5, 5), (1, 1), (4, 4), (1, 1)),
    Shape(1, 1, (2, 3), (4, 5, 6), (2, 3, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2)),
    Shape(2, 2, (1, 1), (3, 4, 5), (2, 2, 2), (2, 1, 2), (0, 1, 1), (1, 2, 1)),
]
# Large enough that kernels process several blocks: rows of one image, and images.
LARGE = [
    Shape(2, 1, (16, 8), (70, 65), (3, 3), (1, 1), (1, 1), (1, 1)),
    Shape(40, 2, (64, 8), (6, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    Shape(2, 1, (40, 8), (90, 80), (1, 1), (1, 1), (0, 0), (1, 1)),
    Shape(3, 1, (3, 4), (70_000,), (5,), (2,), (3,), (1,)),
]


def taps(shape: Shape) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each element of a kernel, and the elements of a padded input that it multiplies."""
    for tap in itertools.product(*map(range, shape.kernel)):
        yield (
            tap,
            tuple(
                slice(t * dilation, t * dilation + (out - 1) * stride + 1, stride)
                for t, dilation, stride, out in zip(
                    tap, shape.dilation, shape.stride, shape.out_size, strict=True
                )
            ),
        )


def expected(op: str, shape: Shape, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The pass by its definition, on an input padded with zeros."""
    out_shape = shape.of(op)[0]
    dtype = np.result_type(a, b)
    margins = [(padding, padding) for padding in shape.padding]
    inner = (..., *(slice(p, p + n) for p, n in zip(shape.padding, shape.size, strict=True)))
    source = {"forward": a, "weight_grad": b}.get(op, np.zeros(shape.input, dtype))
    padded = np.pad(source, [(0, 0), (0, 0), *margins])
    result = np.zeros(out_shape, dtype)
    c, k = shape.channels
    for group in range(shape.groups):
        into, outof = slice(group * c, (group + 1) * c), slice(group * k, (group + 1) * k)
        for tap, window in taps(shape):
            met = (slice(None), into, *window)
            one = (outof, slice(None), *tap)
            if op == "forward":
                result[:, outof] += np.einsum("nc...,kc->nk...", padded[met], b[one])
            elif op == "input_grad":
                padded[met] += np.einsum("nk...,kc->nc...", a[:, outof], b[one])
            else:
                grad, given = (np.moveaxis(x, 1, 0) for x in (a[:, outof], padded[met]))
                result[one] = grad.reshape(k, -1) @ given.reshape(c, -1).T
    return padded[inner] if op == "input_grad" else result


def run(
    device: Device,
    case: Case,
    shape: Shape,
    out: Array,
    a: Array,
    b: Array,
    bias: Array | None = None,
) -> None:
    params = device.api.ConvolutionParams(
        list(shape.stride),
        list(shape.padding),
        list(shape.dilation),
        shape.groups,
        bias.view if bias is not None else None,
    )
    code = device.api.ConvolutionPass[case.op]
    device.run(case, [out], code, out, a, b, more=[params])


def check(device: Device, op: str, dtype: str, shape: Shape) -> None:
    case = Case("convolution", op, dtype, "contiguous")
    out_shape, a_shape, b_shape = shape.of(op)
    a = device.integers(dtype, a_shape, layouts.contiguous, "a")
    b = device.integers(dtype, b_shape, layouts.contiguous, "b")
    out = device.array(dtype, out_shape)
    run(device, case, shape, out, a, b)
    wanted = expected(op, shape, oracle.wide(a.values), oracle.wide(b.values))
    device.assert_close(case, out, wanted, signed_zeros=False)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", oracle.NUMBERS)
@pytest.mark.parametrize("op", PASSES)
def test_convolution(device: Device, op: str, dtype: str, shape: Shape) -> None:
    check(device, op, dtype, shape)


@pytest.mark.parametrize("shape", LARGE, ids=str)
@pytest.mark.parametrize("op", PASSES)
def test_large_convolution(device: Device, op: str, shape: Shape) -> None:
    check(device, op, "float32", shape)


@pytest.mark.full
@pytest.mark.parametrize("shape", LARGE, ids=str)
@pytest.mark.parametrize("dtype", ["int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("op", PASSES)
def test_large_convolution_of_any_type(device: Device, op: str, dtype: str, shape: Shape) -> None:
    if dtype == "float16" and op == "weight_grad":
        pytest.skip("sums of so many products are not exact")
    check(device, op, dtype, shape)


@pytest.mark.parametrize(
    "place", [layouts.contiguous, layouts.stepped], ids=lambda place: place.__name__
)
@pytest.mark.parametrize("shape", [*SHAPES, LARGE[0], LARGE[1]], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "complex64"])
def test_bias_is_added_to_channels(
    device: Device, dtype: str, shape: Shape, place: layouts.Placer
) -> None:
    case = Case("convolution", "forward", dtype, place.__name__)
    a = device.integers(dtype, shape.input, layouts.contiguous, "a")
    b = device.integers(dtype, shape.weight, layouts.contiguous, "b")
    bias = device.integers(dtype, (shape.output[1],), place, "bias")
    out = device.array(dtype, shape.output)
    run(device, case, shape, out, a, b, bias)
    wanted = expected("forward", shape, oracle.wide(a.values), oracle.wide(b.values))
    wanted = wanted + oracle.wide(bias.values).reshape(-1, *(1,) * len(shape.size))
    device.assert_close(case, out, wanted, signed_zeros=False)


@pytest.mark.parametrize("op", PASSES)
def test_sizes_of_input_and_output_are_independent(device: Device, op: str) -> None:
    """The input may end before the last window, or extend beyond it, as with output_padding."""
    case = Case("convolution", op, "float32", "contiguous")
    whole = Shape(2, 1, (3, 2), (12,), (3,), (3,), (1,), (2,))
    for size in (9, 13):
        given = Shape(2, 1, (3, 2), (size,), (3,), (3,), (1,), (2,))
        shapes = {"input": given.input, "weight": whole.weight, "output": whole.output}
        names = PASSES[op]
        arrays = [
            device.integers("float32", shapes[name], layouts.contiguous, name) for name in names
        ]
        out = device.array("float32", shapes[names[0]])
        run(device, case, given, out, *arrays[1:])
        # The same with an input that is long enough for every window.
        long = Shape(2, 1, (3, 2), (16,), (3,), (3,), (1,), (2,))
        values = [array.values for array in arrays]
        for index, name in enumerate(names):
            if name == "input":
                values[index] = np.pad(values[index], [(0, 0), (0, 0), (0, 16 - size)])
            if name == "output":
                missing = long.out_size[0] - whole.out_size[0]
                values[index] = np.pad(values[index], [(0, 0), (0, 0), (0, missing)])
        wanted = expected(op, long, *map(oracle.wide, values[1:]))
        if names[0] != "weight":
            wanted = wanted[..., : shapes[names[0]][-1]]
        device.assert_exact(case, out, wanted + 0.0)


def test_gradient_of_no_images_is_zero(device: Device) -> None:
    case = Case("convolution", "weight_grad", "float32", "contiguous")
    shape = Shape(0, 1, (3, 4), (5, 5), (3, 3), (1, 1), (0, 0), (1, 1))
    a = device.array("float32", shape.output, values=np.zeros(shape.output))
    b = device.array("float32", shape.input, values=np.zeros(shape.input))
    out = device.array("float32", shape.weight)
    run(device, case, shape, out, a, b)
    device.assert_exact(case, out, np.zeros(shape.weight))


@pytest.mark.parametrize(
    "shape", [LARGE[0], Shape(8, 32, (1, 1), (40, 40), (3, 3), (1, 1), (1, 1), (1, 1))], ids=str
)
@pytest.mark.parametrize("dtype", [*oracle.FLOATING, "complex64"])
@pytest.mark.parametrize("op", PASSES)
def test_errors_of_convolutions_stay_within_their_bound(
    device: Device, op: str, dtype: str, shape: Shape
) -> None:
    case = Case("convolution", op, dtype, "contiguous")
    random = rng(op, dtype)
    out_shape, a_shape, b_shape = shape.of(op)
    a = device.array(dtype, a_shape, values=random.normal(size=a_shape))
    b = device.array(dtype, b_shape, values=random.normal(size=b_shape))
    out = device.array(dtype, out_shape)
    run(device, case, shape, out, a, b)
    wide = oracle.wide(a.values), oracle.wide(b.values)
    wanted = expected(op, shape, *wide)
    total = expected(op, shape, *map(np.abs, wide))
    terms = {
        "forward": shape.channels[0] * math.prod(shape.kernel),
        "input_grad": shape.channels[1] * math.prod(shape.kernel),
        "weight_grad": shape.batch * math.prod(shape.out_size),
    }[op]
    bound = tolerances.error_of_sum(dtype, 2 * terms, total)
    bound = bound + tolerances.spacing(wanted, DTYPES[dtype])
    device.assert_within(case, out.read(), wanted, bound)


def test_every_pass_is_tested(device: Device) -> None:
    assert set(PASSES) == {op.name for op in device.api.ConvolutionPass}
