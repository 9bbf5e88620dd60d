"""out[...] = in[...], converted"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernels import layouts, tolerances
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

PAIRS = list(itertools.product(DTYPES, DTYPES))
NARROW = ("float16", "bfloat16")


def values(source: str, target: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers that both types can represent, including the limits of the narrower one."""
    random = rng(source, target, shape)
    to = DTYPES[target]
    low, high = -1000.0, 1000.0
    if to.kind in "iu" and source != "bool":
        info = np.iinfo(to)
        low, high = max(low, float(info.min)), min(high, float(info.max))
    if source in ("uint8", "bool"):
        low = 0.0
    if source in ("uint8", "int8"):
        high = min(high, float(np.iinfo(DTYPES[source]).max))
        low = max(low, float(np.iinfo(DTYPES[source]).min))
    drawn = np.asarray(random.uniform(low, high, shape))
    drawn[random.random(shape) < 0.1] = 0.0
    if DTYPES[source].kind == "c":
        # Numbers of float32, so that conversions through float32 round only once.
        return (drawn.astype(np.float32) + 1j * random.uniform(-9, 9, shape)).astype(DTYPES[source])
    if source in tolerances.FLOATING and to.kind in "fVc" and drawn.size > 50:
        places = random.choice(drawn.size, 8, replace=False)
        edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, 65519.0, 65520.0]
        drawn.reshape(-1)[places] = edges
    with np.errstate(over="ignore"):
        return np.asarray(drawn.astype(np.float32).astype(DTYPES[source]))


def expected(given: NDArray[Any], target: str) -> NDArray[Any]:
    to = DTYPES[target]
    with np.errstate(all="ignore"):
        if np.iscomplexobj(given) and to.kind not in "cb":
            given = given.real
        if to.kind in "iu" and given.dtype.kind in "fV":
            given = np.trunc(given.astype(np.float64))
        if target in NARROW and given.dtype.kind != "V":
            given = given.astype(np.float32)
        return np.asarray(given != 0 if target == "bool" else given.astype(to))


def check(device: Device, source: str, target: str, layout: layouts.Layout) -> None:
    case = Case("copy", source, target, layout.name)
    given = device.array(
        source, layout.shape, layout.inputs[0], values(source, target, layout.shape)
    )
    out = device.array(target, layout.shape, layout.out)
    device.run(case, [out], out, given)
    device.assert_exact(case, out, expected(given.values, target))


CASES = [
    pytest.param(source, target, layout, id=f"{source}-{target}-{layout}")
    for source, target in PAIRS
    for layout in layouts.ELEMENTWISE
    if not layout.in_place
] + [
    pytest.param(source, target, layouts.of_shape(shape), marks=pytest.mark.full)
    for source, target in PAIRS
    for shape in layouts.sizes(source)
]


@pytest.mark.parametrize(("source", "target", "layout"), CASES)
def test_copy(device: Device, source: str, target: str, layout: layouts.Layout) -> None:
    check(device, source, target, layout)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
def test_copy_between_any_orders_of_dimensions(
    device: Device, dtype: str, order: tuple[int, ...]
) -> None:
    def permuted(shape: tuple[int, ...]) -> layouts.Placement:
        plain = layouts.contiguous(tuple(shape[dim] for dim in order)).strides
        strides = tuple(plain[order.index(dim)] for dim in range(3))
        return layouts.Placement.of(shape, strides)

    shape = (70, 3, 131)
    check(device, dtype, dtype, layouts.Layout("permuted", shape, permuted, (layouts.contiguous,)))
    check(device, dtype, dtype, layouts.Layout("permuted", shape, layouts.offset, (permuted,)))


@pytest.mark.parametrize("target", ["uint8", "int8", "int16", "int32"])
def test_integers_keep_their_low_bits(device: Device, target: str) -> None:
    case = Case("copy", "int64", target, "contiguous")
    random = rng(case)
    given = device.array("int64", (999,), values=random.integers(-(2**62), 2**62, 999))
    out = device.array(target, (999,))
    device.run(case, [out], out, given)
    device.assert_exact(case, out, given.values.astype(DTYPES[target]))


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_numbers_are_equal_after_conversion_to_float32_and_back(
    device: Device, dtype: str
) -> None:
    patterns = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype])
    narrow = device.array(dtype, patterns.shape)
    narrow.storage[...] = patterns
    narrow.upload()
    wide = device.array("float32", patterns.shape)
    again = device.array(dtype, patterns.shape)
    for case, out, given in [
        (Case("copy", dtype, "float32", "contiguous"), wide, narrow),
        (Case("copy", "float32", dtype, "contiguous"), again, wide),
    ]:
        device.run(case, [out], out, given)
        device.assert_exact(case, out, patterns.astype(DTYPES[out.dtype]))
