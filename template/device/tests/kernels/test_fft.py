"""Fourier transforms of some dimensions of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernels import layouts
from kernels.harness import DTYPES, Array, Device, uniform
from kernels.support import Case
from numpy.typing import NDArray

REAL = {"complex64": "float32", "complex128": "float64"}
COMPLEX = tuple(REAL)
OPS = ("forward", "backward", "real_forward", "real_backward")
# Small and large primes, their products, and remainders of any vector width.
LENGTHS = [*range(1, 18), 20, 31, 32, 37, 49, 60, 64, 97, 100, 121, 128, 243, 250, 256, 331, 1000]
LONG = [2**13, 3 * 2**12, 5**6, 7919, 2 * 4099, 2**16]


def transform(op: str, values: NDArray[Any], dims: Sequence[int], size: int) -> NDArray[Any]:
    """The whole transform, of `size` elements along the last dimension, without any factor."""
    if op == "forward":
        return np.asarray(np.fft.fftn(values, axes=dims))
    if op == "real_forward":
        return np.asarray(np.fft.fftn(values, axes=dims))
    shape = [values.shape[dim] for dim in dims[:-1]] + [size]
    if op == "backward":
        return np.asarray(np.fft.ifftn(values, axes=dims) * math.prod(shape))
    return np.asarray(np.fft.irfftn(values, s=shape, axes=dims) * math.prod(shape))


def arrays(
    device: Device,
    op: str,
    dtype: str,
    shape: tuple[int, ...],
    dims: Sequence[int],
    place: layouts.Placer,
    full: bool,
    out_place: layouts.Placer | None = None,
) -> tuple[Array, Array]:
    """Output and input of a transform of this shape. `dtype` is the complex type."""
    half = list(shape)
    half[dims[-1]] = shape[dims[-1]] // 2 + 1
    of_in, of_out = dtype, dtype
    in_shape, out_shape = shape, shape
    if op == "real_forward":
        of_in, out_shape = REAL[dtype], shape if full else tuple(half)
    elif op == "real_backward":
        of_out, in_shape = REAL[dtype], tuple(half)
    source = device.array(of_in, in_shape, place, uniform(of_in, in_shape))
    return device.array(of_out, out_shape, out_place or place), source


def check(
    device: Device,
    op: str,
    dtype: str,
    shape: tuple[int, ...],
    dims: Sequence[int],
    place: layouts.Placer = layouts.contiguous,
    full: bool = False,
    factor: float = 1.0,
    out_place: layouts.Placer | None = None,
) -> None:
    out, source = arrays(device, op, dtype, shape, dims, place, full, out_place)
    case = Case("fft", op, dtype, place.__name__)
    params = device.api.FftParams(dims=list(dims), factor=factor)
    device.run(case, [out], device.api.FftOp[op], params, out, source)
    wide = source.values.astype(np.complex128 if source.dtype in COMPLEX else np.float64)
    expected = factor * transform(op, wide, dims, shape[dims[-1]])
    expected = expected[tuple(slice(size) for size in out.shape)]
    # Rounding errors add up as in a pairwise sum.
    count = math.prod(shape[dim] for dim in dims)
    size = math.sqrt(np.mean(np.abs(expected) ** 2)) + np.abs(expected).max() / 8
    allowed = 8 * np.finfo(DTYPES[REAL[dtype]]).eps * (2 + math.log2(count)) * size
    device.assert_within(case, out.read(), expected, allowed, signed_zeros=False)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_every_length(device: Device, dtype: str, op: str, length: int) -> None:
    check(device, op, dtype, (19, length), [1])
    check(device, op, dtype, (length, 19), [0], layouts.stepped)
    check(device, op, dtype, (1, length), [1], layouts.offset, factor=0.25)


@pytest.mark.parametrize(
    "dims", [[0], [1], [2], [0, 1], [1, 0], [2, 0], [1, 2], [0, 1, 2], [2, 0, 1]], ids=str
)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_dimensions_in_any_order(device: Device, dtype: str, op: str, dims: list[int]) -> None:
    check(device, op, dtype, (5, 12, 9), dims, factor=0.5)
    check(device, op, dtype, (4, 3, 10), dims, layouts.shuffled)


@pytest.mark.parametrize("length", [2, 7, 8, 97, 4096])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_expanded_inputs(device: Device, dtype: str, op: str, length: int) -> None:
    for place in (layouts.expanded_rows, layouts.expanded_columns, layouts.one_element):
        for shape, dims in (((19, length), [1]), ((length, 19), [0]), ((2, length), [0, 1])):
            check(device, op, dtype, shape, dims, place, out_place=layouts.contiguous)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 48])
@pytest.mark.parametrize("dims", [[1], [0, 1], [1, 0]], ids=str)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_all_elements_of_a_real_transform(
    device: Device, dtype: str, dims: list[int], length: int
) -> None:
    check(device, "real_forward", dtype, (12, length), dims, full=True)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_of_many_dimensions(device: Device, dtype: str, op: str) -> None:
    check(device, op, dtype, layouts.DEEP, [9, 3, 15], layouts.shuffled)


def test_imaginary_parts_of_real_bins_are_ignored(device: Device) -> None:
    op = "real_backward"
    out, source = arrays(device, op, "complex64", (3, 8), [1], layouts.contiguous, full=False)
    case = Case("fft", op, "complex64", "contiguous")
    values = source.values
    expected = transform(op, np.asarray(values, np.complex128), [1], 8)
    values[:, [0, -1]] += np.asarray(1j, np.complex64) * 1000
    source.set(values)
    device.run(case, [out], device.api.FftOp[op], device.api.FftParams(dims=[1]), out, source)
    device.assert_within(case, out.read(), expected, 1e-5, signed_zeros=False)


@pytest.mark.parametrize("op", OPS)
def test_nan_affects_only_its_row(device: Device, op: str) -> None:
    out, source = arrays(device, op, "complex64", (11, 12), [1], layouts.contiguous, full=False)
    case = Case("fft", op, "complex64", "contiguous")
    values = source.values
    expected = transform(op, np.asarray(values, np.complex128), [1], 12)[:, : out.shape[1]]
    values[4] = np.nan
    expected[4] = np.nan
    source.set(values)
    device.run(case, [out], device.api.FftOp[op], device.api.FftParams(dims=[1]), out, source)
    got = out.read()
    assert np.isnan(got[4]).all()
    rest = np.arange(11) != 4
    assert np.abs(got[rest] - expected[rest]).max() < 1e-4


@pytest.mark.full
@pytest.mark.parametrize("length", LONG)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_long_lines(device: Device, dtype: str, op: str, length: int) -> None:
    check(device, op, dtype, (2, length), [1])
    check(device, op, dtype, (9, length), [1])


def test_every_operation_is_tested(device: Device) -> None:
    assert set(OPS) == {op.name for op in device.api.FftOp}
