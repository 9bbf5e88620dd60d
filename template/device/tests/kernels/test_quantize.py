"""Quantization and dequantization."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import layouts
from kernels.harness import Array, Device, rng
from kernels.support import Case
from kernels.test_scaled_matmul import FLOAT8, INT4, raw, spread
from numpy.typing import NDArray

Numbers = NDArray[Any]
RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int4x2": (-8, 7),
}
BLOCKS = {
    "tensor": (1 << 40, 1 << 40),
    "row": (1, 1 << 40),
    "column": (1 << 40, 1),
    "group": (1, 8),
}
SHAPE = (2, 5, 24)


def parameters(
    device: Device, dtype: str, kind: str, wide: str
) -> tuple[dict[str, Any], Numbers, Numbers]:
    """The fields of a descriptor, and the scale and the zero of each element."""
    block = tuple(min(size, whole) for size, whole in zip(BLOCKS[kind], SHAPE[1:], strict=True))
    shape = (SHAPE[0], *(-(-size // by) for size, by in zip(SHAPE[1:], block, strict=True)))
    random = rng(dtype, kind)
    coarse = 1e-3 if dtype in ("int16", "int32") else 0.3 if dtype == "int4x2" else 0.05
    scale = device.array(wide, shape, layouts.stepped, coarse * random.uniform(0.5, 2, shape))
    fields: dict[str, Any] = {"scale": scale, "block": block}
    zero = np.zeros(shape)
    if dtype in RANGES:
        fields |= {"least": float(RANGES[dtype][0]), "most": float(RANGES[dtype][1])}
        zero = random.integers(-3, 4, shape)
        fields["zero"] = device.array("int32", shape, values=zero)
    return fields, spread(scale.values, block, SHAPE), spread(zero, block, SHAPE)


def make(device: Device, dtype: str, codes: Numbers) -> Array:
    """A quantized array from its numbers."""
    if dtype == "int4x2":
        low, high = codes[..., ::2].astype(np.uint8) & 15, codes[..., 1::2].astype(np.uint8) & 15
        return raw(device, dtype, np.ascontiguousarray(low | high << 4), layouts.contiguous)
    if dtype in FLOAT8:
        return raw(device, dtype, codes.astype(getattr(ml_dtypes, dtype)), layouts.contiguous)
    return device.array(dtype, SHAPE, layouts.stepped, codes)


def numbers(dtype: str, array: Array) -> Numbers:
    """The current numbers of a quantized array."""
    got = array.read()
    if dtype == "int4x2":
        return np.stack([INT4[got & 15], INT4[got >> 4]], -1).reshape(SHAPE)
    return got.view(getattr(ml_dtypes, dtype)).astype(float) if dtype in FLOAT8 else got


@pytest.mark.parametrize("given", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", list(BLOCKS))
@pytest.mark.parametrize("dtype", [*RANGES, *FLOAT8])
def test_quantize(device: Device, dtype: str, kind: str, given: str) -> None:
    wide = "float64" if given == "float64" else "float32"
    fields, scale, zero = parameters(device, dtype, kind, wide)
    values = rng(dtype, kind, given).normal(scale=9, size=SHAPE)
    source = device.array(given, SHAPE, layouts.stepped, values)
    out = make(device, dtype, np.zeros(SHAPE))
    params = device.descriptor("QuantizeParams", **fields)
    device.run(Case("quantize", kind, dtype, given), [out], out, source, more=[params])
    computed = np.float64 if wide == "float64" or dtype == "int32" else np.float32
    exact = source.values.astype(computed) * (computed(1) / scale.astype(computed))
    if dtype in FLOAT8:
        target = getattr(ml_dtypes, dtype)
        most = float(ml_dtypes.finfo(target).max)
        wanted = np.clip(exact, -most, most).astype(target).astype(float)
    else:
        wanted = np.clip(np.rint(exact) + zero, *RANGES[dtype])
    np.testing.assert_array_equal(numbers(dtype, out), wanted)


@pytest.mark.parametrize("given", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", list(BLOCKS))
@pytest.mark.parametrize("dtype", [*RANGES, *FLOAT8])
def test_dequantize(device: Device, dtype: str, kind: str, given: str) -> None:
    wide = "float64" if given == "float64" else "float32"
    fields, scale, zero = parameters(device, dtype, kind, wide)
    low, high = RANGES.get(dtype, (-9, 9))
    codes = rng(dtype, kind).integers(max(low, -999), min(high, 999) + 1, SHAPE)
    source = make(device, dtype, codes)
    out = device.array(given, SHAPE, layouts.stepped)
    params = device.descriptor("QuantizeParams", **fields)
    case = Case("dequantize", kind, dtype, given)
    device.run(case, [out], out, source, more=[params])
    stored = codes.astype(getattr(ml_dtypes, dtype)).astype(float) if dtype in FLOAT8 else codes
    wanted = (stored - zero) * scale.astype(float)
    relative = {"float32": 2**-22, "float64": 2**-50, "bfloat16": 2**-8, "float16": 2**-10}[given]
    device.assert_within(case, out.read(), wanted, relative * np.abs(wanted) + 1e-6 * relative)
