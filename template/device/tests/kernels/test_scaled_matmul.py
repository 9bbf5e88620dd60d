"""matmul with scales, zero points, packed elements, groups and operations on the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import layouts
from kernels.harness import Array, Device, rng
from kernels.support import Case
from kernels.unary_oracle import ACTIVATIONS
from numpy.typing import NDArray

Numbers = NDArray[Any]

FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
INT4 = np.array([0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1])
PACKED = {"float4_e2m1fn_x2": FLOAT4, "int4x2": INT4}
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
WHOLE = ["int8", "uint8", "int4x2"]
FACTORS = [*FLOAT8, "float4_e2m1fn_x2", *WHOLE, "float16", "bfloat16", "float32"]


def raw(device: Device, dtype: str, values: Numbers, place: layouts.Placer) -> Array:
    """An array of a type that is only bytes in numpy."""
    array = device.array("uint8", values.shape, place, values.view(np.uint8))
    array.view = array.buffer.view(
        array.placement.offset,
        device.api.DType[dtype],
        list(values.shape),
        list(array.placement.strides),
    )
    return array


@dataclass
class Factor:
    """A factor of a product: the device's arguments, and the numbers that they represent."""

    array: Array
    numbers: Numbers


def factor(
    device: Device,
    dtype: str,
    shape: tuple[int, int, int],
    inner: int,
    place: layouts.Placer = layouts.contiguous,
) -> Factor:
    """`inner` is the dimension along which two numbers are packed."""
    random = rng(dtype, shape, inner)
    if dtype in PACKED:
        codes = random.integers(0, 16, shape).astype(np.uint8)
        pairs = np.moveaxis(codes, inner, -1)
        packed = np.moveaxis(pairs[..., ::2] | pairs[..., 1::2] << 4, -1, inner)
        return Factor(raw(device, dtype, np.ascontiguousarray(packed), place), PACKED[dtype][codes])
    if dtype in FLOAT8:
        values = random.normal(size=shape).astype(getattr(ml_dtypes, dtype))
        return Factor(raw(device, dtype, values, place), values.astype(np.float64))
    if dtype in WHOLE:
        info = np.iinfo(dtype)
        values = random.integers(info.min, info.max + 1, shape)
        return Factor(device.array(dtype, shape, place, values), values.astype(np.float64))
    array = device.array(dtype, shape, place, random.normal(size=shape))
    return Factor(array, array.values.astype(np.float64))


@dataclass
class Wanted:
    """A product in float64, and its descriptor's fields."""

    a: Numbers
    b: Numbers
    fields: dict[str, Any] = field(default_factory=dict)


def spread(values: Numbers, block: tuple[int, int], shape: tuple[int, ...]) -> Numbers:
    """Expands one number per block to one number per element."""
    for axis in (1, 2):
        size = min(block[axis - 1], shape[axis])
        values = np.repeat(values, size, axis).take(range(shape[axis]), axis)
    return values


BLOCKS: dict[str, Callable[[tuple[int, ...], int], tuple[int, int]]] = {
    "tensor": lambda shape, inner: (shape[1], shape[2]),
    "row": lambda shape, inner: (1, shape[2]) if inner == 2 else (shape[1], 1),
    "block": lambda shape, inner: (3, 8) if inner == 2 else (8, 3),
    "group": lambda shape, inner: (1, 16) if inner == 2 else (16, 1),
}


def scale(
    device: Device,
    wanted: Wanted,
    side: str,
    kind: str,
    *,
    dtype: str = "float32",
    what: tuple[str, ...] = ("scale",),
    shared: bool = False,
) -> None:
    """Adds scales, zero points or shifts to one factor."""
    numbers = getattr(wanted, side)
    block = BLOCKS[kind](numbers.shape, 2 if side == "a" else 1)
    counts = [-(-numbers.shape[axis] // block[axis - 1]) for axis in (1, 2)]
    shape = (1 if shared else numbers.shape[0], *counts)
    random = rng(kind, side, shape)
    for name in ("zero", "scale", "shift"):
        if name not in what:
            continue
        if dtype == "float8_e8m0fnu":
            values = np.exp2(random.integers(-3, 4, shape)).astype(ml_dtypes.float8_e8m0fnu)
            array, exact = raw(device, dtype, values, layouts.contiguous), values.astype(float)
        else:
            drawn = random.integers(-5, 6, shape) if name == "zero" else random.normal(size=shape)
            array = device.array(dtype, shape, layouts.stepped, drawn)
            exact = array.values.astype(np.float64)
        wanted.fields[f"{name}_{side}"] = array
        wanted.fields[f"block_{side}"] = block
        apply = {"zero": np.subtract, "scale": np.multiply, "shift": np.add}[name]
        numbers = apply(numbers, spread(exact, block, numbers.shape))
    setattr(wanted, side, numbers)


def run(
    device: Device,
    case: Case,
    out: Array,
    one: Factor,
    two: Factor,
    wanted: Wanted,
    tolerance: float,
    after: Callable[[Numbers], Numbers] = lambda x: x,
) -> None:
    params = device.descriptor("MatmulParams", **wanted.fields)
    device.run(case, [out], out, one.array, two.array, more=[params])
    expected = after(wanted.a @ wanted.b)
    size = np.abs(wanted.a) @ np.abs(wanted.b) + np.abs(expected) + 1e-30
    device.assert_within(case, out.read(), expected, tolerance * size)


TOLERANCE = {"float32": 1e-5, "bfloat16": 2**-7, "float16": 2**-9}


@pytest.mark.parametrize("size", [(1, 5, 32, 7), (2, 9, 48, 70)], ids=str)
@pytest.mark.parametrize("kind", list(BLOCKS))
@pytest.mark.parametrize("dtype", FACTORS)
def test_scales(device: Device, dtype: str, kind: str, size: tuple[int, int, int, int]) -> None:
    batch, rows, inner, columns = size
    one = factor(device, dtype, (batch, rows, inner), 2)
    two = factor(device, dtype, (batch, inner, columns), 1, layouts.stepped)
    wanted = Wanted(one.numbers, two.numbers)
    scale(device, wanted, "a", kind)
    scale(device, wanted, "b", kind, shared=True)
    out = device.array("float32", (batch, rows, columns))
    run(device, Case("matmul", f"scale_{kind}", dtype), out, one, two, wanted, TOLERANCE["float32"])


@pytest.mark.parametrize("out_dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4x2"])
def test_weights_with_zero_points_and_shifts(device: Device, dtype: str, out_dtype: str) -> None:
    one = factor(device, out_dtype, (1, 3, 64), 2)
    two = factor(device, dtype, (1, 64, 40), 1)
    for what in (("scale", "zero"), ("scale", "shift")):
        wanted = Wanted(one.numbers, two.numbers)
        scale(device, wanted, "b", "group", what=what, dtype=out_dtype)
        out = device.array(out_dtype, (1, 3, 40))
        case = Case("matmul", f"weights_{what[1]}", dtype, out_dtype)
        run(device, case, out, one, two, wanted, TOLERANCE[out_dtype])


@pytest.mark.parametrize("dtype", [*FLOAT8[:2], "float4_e2m1fn_x2"])
def test_microscaling(device: Device, dtype: str) -> None:
    one = factor(device, dtype, (1, 5, 64), 2)
    two = factor(device, dtype, (1, 64, 6), 1)
    wanted = Wanted(one.numbers, two.numbers)
    scale(device, wanted, "a", "group", dtype="float8_e8m0fnu")
    scale(device, wanted, "b", "group", dtype="float8_e8m0fnu")
    out = device.array("float32", (1, 5, 6))
    case = Case("matmul", "microscaling", dtype)
    run(device, case, out, one, two, wanted, TOLERANCE["float32"])


@pytest.mark.parametrize("pair", [("int8", "int8"), ("uint8", "int8"), ("int8", "int4x2")], ids=str)
def test_integers_are_exact(device: Device, pair: tuple[str, str]) -> None:
    one = factor(device, pair[0], (2, 5, 1300), 2)
    two = factor(device, pair[1], (2, 1300, 6), 1)
    bias = device.array("int32", (2, 5, 6), values=rng(pair).integers(-9, 9, (2, 5, 6)))
    out = device.array("int32", (2, 5, 6))
    case = Case("matmul", "integers", pair[0], pair[1])
    params = device.descriptor("MatmulParams", accumulate="int32", bias=bias, beta=3, alpha=2)
    device.run(case, [out], out, one.array, two.array, more=[params])
    expected = 2 * (one.numbers @ two.numbers) + 3 * bias.values
    device.assert_exact(case, out, expected.astype(np.int64))


# --- Groups ---

ENDS = [4, 4, 11, 16]


def groups_of(ragged: str) -> tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, ...]]:
    groups, total = len(ENDS), ENDS[-1]
    if ragged == "rows":
        return (1, total, 16), (groups, 16, 6), (1, total, 6)
    if ragged == "columns":
        return (groups, 5, 16), (1, 16, total), (1, 5, total)
    return (1, 5, total), (1, total, 6), (groups, 5, 6)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("ragged", ["rows", "columns", "inner"])
def test_groups(device: Device, ragged: str, dtype: str, scaled: bool) -> None:
    a_shape, b_shape, out_shape = groups_of(ragged)
    one, two = factor(device, dtype, a_shape, 2), factor(device, dtype, b_shape, 1)
    ends = device.array("int32", (len(ENDS),), values=np.array(ENDS))
    fields = {"ragged": ragged, "ends": ends}
    a, b = one.numbers, two.numbers
    a_scale = np.ones((1 if ragged == "rows" else len(ENDS), a_shape[1], 1))
    b_scale = np.ones((1 if ragged == "columns" else len(ENDS), 1, b_shape[2]))
    if scaled:
        scales = [
            device.array(
                "float32", like.shape, values=rng(name, ragged).uniform(0.5, 2, like.shape)
            )
            for name, like in (("a", a_scale), ("b", b_scale))
        ]
        a_scale, b_scale = (given.values.astype(float) for given in scales)
        fields |= {"scale_a": scales[0], "scale_b": scales[1]}
        fields |= {"block_a": (1, a_shape[2]), "block_b": (b_shape[1], 1)}
    expected, size = np.zeros(out_shape), np.zeros(out_shape)
    into: tuple[Any, ...]
    for group, (first, end) in enumerate(zip([0, *ENDS[:-1]], ENDS, strict=True)):
        piece = slice(first, end)
        if ragged == "rows":
            left, right = a[0, piece] * a_scale[0, piece], b[group] * b_scale[group]
            into = (0, piece)
        elif ragged == "columns":
            left, right = a[group] * a_scale[group], b[0, :, piece] * b_scale[0, :, piece]
            into = (0, slice(None), piece)
        else:
            left, right = a[0, :, piece] * a_scale[group], b[0, piece] * b_scale[group]
            into = (group,)
        expected[into] = left @ right
        size[into] = np.abs(left) @ np.abs(right)
    out_dtype = "bfloat16" if dtype == "bfloat16" else "float32"
    out = device.array(out_dtype, out_shape)
    case = Case("matmul", f"groups_{ragged}", dtype, "scaled" if scaled else "plain")
    params = device.descriptor("MatmulParams", **fields)
    device.run(case, [out], out, one.array, two.array, more=[params])
    bound = TOLERANCE[out_dtype] * (size + 1e-30)
    device.assert_within(case, out.read(), expected, bound)


@pytest.mark.parametrize("ends", [[4, 3], [4, 17]], ids=str)
def test_wrong_ends_of_groups_are_reported(device: Device, ends: list[int]) -> None:
    one, two = factor(device, "float32", (1, 16, 4), 2), factor(device, "float32", (2, 4, 3), 1)
    out = device.array("float32", (1, 16, 3))
    params = device.descriptor(
        "MatmulParams", ragged="rows", ends=device.array("int32", (2,), values=np.array(ends))
    )
    case = Case("matmul", "groups_rows", "float32", "plain")
    device.run_invalid(case, "group ends must ascend", out, one.array, two.array, more=[params])


# --- Operations on the result ---


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_activations(device: Device, dtype: str, activation: str) -> None:
    one, two = factor(device, dtype, (2, 5, 16), 2), factor(device, dtype, (2, 16, 7), 1)
    bias, times, plus = (
        device.array(dtype, (2, 5, 7), layouts.expanded_rows, rng(name).normal(size=(2, 5, 7)))
        for name in ("bias", "factor", "addend")
    )
    accumulate = "float64" if dtype == "float64" else "float32"
    fields = {"activation": activation, "bias": bias, "beta": 2, "alpha": 0.5}
    wanted = Wanted(one.numbers, two.numbers, fields | {"accumulate": accumulate})
    wanted.fields |= {"factor": times, "addend": plus}

    def after(product: Numbers) -> Numbers:
        x = 0.5 * product + 2 * bias.values.astype(float)
        x = ACTIVATIONS[activation](x)
        return np.asarray(x * times.values.astype(float) + plus.values.astype(float))

    out = device.array(dtype, (2, 5, 7), layouts.stepped)
    tolerance = TOLERANCE.get(dtype, 1e-12)
    run(device, Case("matmul", activation, dtype), out, one, two, wanted, tolerance, after)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_results_are_scaled_and_saturate(device: Device, dtype: str) -> None:
    one, two = factor(device, dtype, (1, 4, 32), 2), factor(device, dtype, (1, 32, 5), 1)
    by = rng(dtype).uniform(0.5, 2, (1, 4, 5)) * np.array([1e6, 1, 1, 1]).reshape(1, 4, 1)
    scale_out = device.array("float32", (1, 4, 5), values=by)
    target = getattr(ml_dtypes, dtype)
    out = raw(device, dtype, np.zeros((1, 4, 5), np.uint8), layouts.contiguous)
    case = Case("matmul", "scale_out", dtype)
    params = device.descriptor("MatmulParams", scale_out=scale_out)
    device.run(case, [out], out, one.array, two.array, more=[params])
    exact = (one.numbers @ two.numbers) * scale_out.values.astype(float)
    most = float(ml_dtypes.finfo(target).max)
    expected = np.clip(exact, -most, most)
    got = out.read().view(target).astype(float)
    spacing = np.maximum(np.abs(expected) * 2.0 ** -ml_dtypes.finfo(target).nmant, 2.0**-9)
    assert np.isfinite(got).all(), case
    assert (np.abs(got - expected) <= spacing).all(), case
