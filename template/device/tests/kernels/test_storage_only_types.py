"""Storage-only element types: copies of all of them, and conversions of float8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_library import needs
from kernels import layouts
from kernels.element_types import DTYPES, STORED
from kernels.harness import Array, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

STORAGE_ONLY = [name for name in STORED if name not in DTYPES]
FLOAT8 = [name for name in STORAGE_ONLY if name.startswith("float8")]
PACKED = ("float4_e2m1fn_x2", "int4x2")
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(UNSIGNED[values.itemsize])


def patterns(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    size = STORED[dtype].itemsize
    raw = rng(dtype, shape).integers(0, 256, (*shape, size), np.uint8)
    return raw.view(STORED[dtype]).reshape(shape)


def array(
    device: Device, dtype: str, shape: tuple[int, ...], place: layouts.Placer = layouts.contiguous
) -> Array:
    made = device.array(dtype, shape, place)
    return made.set(patterns(dtype, shape))


def assert_bits(device: Device, out: Array, expected: NDArray[Any]) -> None:
    if not device.probes_only:
        np.testing.assert_array_equal(bits(out.read()), bits(expected))


LAYOUTS = [layout for layout in layouts.ELEMENTWISE if not layout.in_place]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dtype", STORAGE_ONLY)
def test_copy_within_a_type(device: Device, dtype: str, layout: layouts.Layout) -> None:
    case = Case("copy", dtype, dtype, layout.name)
    given = array(device, dtype, layout.shape, layout.inputs[0])
    out = device.array(dtype, layout.shape, layout.out)
    device.run(case, [out], out, given)
    assert_bits(device, out, given.values)


@pytest.mark.parametrize("dtype", STORAGE_ONLY)
def test_gather_and_scatter(device: Device, dtype: str) -> None:
    table = array(device, dtype, (7, 5), layouts.transposed)
    indices = device.array("int64", (4,), values=np.asarray([6, 0, 3, 1]))
    out = device.array(dtype, (4, 5))
    case = Case("gather", "select", dtype, "transposed")
    device.run(case, [out], device.api.IndexOp.select, out, table, [indices], 0)
    assert_bits(device, out, table.values[[6, 0, 3, 1]])
    source = array(device, dtype, (4, 5))
    expected = table.values
    expected[[6, 0, 3, 1]] = source.values
    case = Case("scatter", "select-assign", dtype, "transposed")
    codes = (device.api.IndexOp.select, device.api.ScatterMode.assign)
    device.run(case, [table], *codes, table, [indices], source, 0)
    assert_bits(device, table, expected)


@pytest.mark.parametrize("dtype", STORAGE_ONLY)
def test_masked_select_and_where(device: Device, dtype: str) -> None:
    needs("compact")
    source = array(device, dtype, (9, 4))
    other = array(device, dtype, (9, 4), layouts.stepped)
    chosen = rng(dtype).random((9, 4)) < 0.5
    mask = device.array("bool", (9, 4), values=chosen)
    out = device.array(dtype, (int(chosen.sum()),))
    count = device.array("int64", (1,))
    case = Case("compact", "masked_select", dtype, "-")
    device.run(case, [out, count], device.api.CompactOp.masked_select, out, count, source, mask)
    assert_bits(device, out, source.values[chosen])
    out = device.array(dtype, (9, 4))
    case = Case("ternary", "where", dtype, "contiguous")
    device.run(case, [out], device.api.TernaryOp.where, out, mask, source, other, 0)
    assert_bits(device, out, np.where(chosen, bits(source.values), bits(other.values)))


@pytest.mark.parametrize("dtype", STORAGE_ONLY)
def test_triangular(device: Device, dtype: str) -> None:
    needs("triangular")
    source = array(device, dtype, (5, 6))
    out = device.array(dtype, (5, 6))
    case = Case("triangular", "lower", dtype, "contiguous")
    device.run(case, [out], device.api.TriangularOp.lower, out, source, 0)
    assert_bits(device, out, np.tril(bits(source.values)))


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3, -2.0, 1e30, float("nan")])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_fill(device: Device, dtype: str, value: float) -> None:
    out = device.array(dtype, (33,))
    case = Case("fill", dtype=dtype, layout="contiguous")
    device.run(case, [out], out, value)
    assert_bits(device, out, np.full((33,), rounded(np.float32([value]), dtype)))


def test_packed_numbers_are_moved_but_not_converted(device: Device) -> None:
    for dtype in PACKED:
        packed, plain = array(device, dtype, (8,)), device.array("float32", (8,))
        for out, given in ((packed, plain), (plain, packed)):
            answer = device.api.copy(device.stream, out.view, given.view, probe=True)
            assert answer, (
                f"copy converts {out.view.dtype.name} from {given.view.dtype.name}, which kernels.h does not allow"
            )
        answer = device.api.fill(device.stream, packed.view, 1.0, probe=True)
        assert answer, f"fill takes {dtype}: kernels.h does not allow packed types"


# --- Conversions ---


def rounded(values: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """The nearest numbers of a type, as in PyTorch. A NaN has the bits of PyTorch's NaN."""
    if dtype == "float8_e8m0fnu":
        pattern = values.view(np.uint32) & 0x7FFFFFFF
        exponent = pattern >> 23
        up = (pattern & 0x7FFFFF) + (exponent > 0) > 0x400000
        result = np.where(exponent == 255, 255, exponent + up).astype(np.uint8)
        return np.asarray(result.view(STORED[dtype]))
    with np.errstate(all="ignore"):
        result = values.astype(STORED[dtype])
    sign = (values.view(np.uint32) >> 31 << 7).astype(np.uint8)
    no_number = np.isnan(result.astype(np.float32))
    pattern = result.view(np.uint8)
    if dtype == "float8_e5m2":
        pattern = np.where(no_number, 0x7E | sign, pattern)
    if dtype == "float8_e4m3fn":
        pattern = np.where(no_number, np.where(np.isnan(values), 0x7F, 0x7E) | sign, pattern)
    return np.asarray(pattern.astype(np.uint8).view(STORED[dtype]))


def edges(dtype: str) -> NDArray[np.float32]:
    """All numbers of the type, the midpoints between them, and the numbers next to these."""
    every = np.arange(256, dtype=np.uint8).view(STORED[dtype]).astype(np.float32)
    finite = np.unique(every[np.isfinite(every)])
    between = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    near = [
        between,
        np.nextafter(between, np.float32(np.inf)),
        np.nextafter(between, np.float32(0)),
    ]
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38])
    with np.errstate(over="ignore"):
        beyond = finite[[0, -1]].repeat(4) * np.float32([1.01, 1.06, 1.13, 2.0] * 2)
    return np.concatenate([finite, *near, special, beyond.astype(np.float32)])


@pytest.mark.parametrize("dtype", FLOAT8)
def test_from_float32(device: Device, dtype: str) -> None:
    case = Case("copy", "float32", dtype, "contiguous")
    values = edges(dtype)
    given = device.array("float32", values.shape, values=values)
    out = device.array(dtype, values.shape)
    device.run(case, [out], out, given)
    assert_bits(device, out, rounded(values, dtype))


@pytest.mark.parametrize("target", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_to_wider_types(device: Device, dtype: str, target: str) -> None:
    case = Case("copy", dtype, target, "contiguous")
    given = device.array(dtype, (256,))
    given.storage[...] = np.arange(256, dtype=np.uint8).view(STORED[dtype])
    given.upload()
    out = device.array(target, (256,))
    device.run(case, [out], out, given)
    device.assert_exact(case, out, given.values.astype(np.float32))


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned_integers(device: Device, dtype: str) -> None:
    values = np.asarray([0, 1, 255, 65535], np.uint64)
    for source, target in ((dtype, "int64"), ("int64", dtype), (dtype, "float64")):
        case = Case("copy", source, target, "contiguous")
        given = device.array(source, values.shape, values=values)
        out = device.array(target, values.shape)
        device.run(case, [out], out, given)
        expected = values.astype(STORED[target])
        np.testing.assert_array_equal(out.read(), expected)
