"""One case of an elementwise family: an operation in one layout, with or without a scalar input."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernels import layouts, oracle
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

INPUTS = {"unary": 1, "binary": 2, "ternary": 3}
DIVISIONS = ("div_trunc", "div_floor", "remainder", "fmod")
SCALARS: dict[str, Any] = {"b": True, "u": 3, "i": 3, "f": 1.5, "V": 1.5, "c": 1.5 + 0.5j}
# Operations with real results for complex numbers.
REAL_PARTS = {"complex64": "float32", "complex128": "float64"}


def check(
    device: Device,
    family: str,
    op: oracle.Operation,
    dtype: str,
    layout: layouts.Layout = layouts.CONTIGUOUS,
    scalar: int | None = None,
) -> None:
    """Runs one case and compares it with the table. Input number `scalar` is a host number."""
    name = layout.name if scalar is None else f"scalar_{'abc'[scalar]}"
    case = Case(family, op.name, dtype, name)
    dtypes = [dtype] * INPUTS[family]
    if op.name == "where":
        dtypes[0] = "bool"
    given = _inputs(op, dtypes, layout.shape, rng(case, layout.shape))
    arrays = [
        device.array(of, layout.shape, layout.inputs[i % len(layout.inputs)], values)
        for i, (of, values) in enumerate(zip(dtypes, given, strict=True))
    ]
    values = [array.values for array in arrays]
    arguments: list[Any] = [*arrays]
    if scalar is not None:
        number = arguments[scalar] = SCALARS[DTYPES[dtypes[scalar]].kind]
        values[scalar] = np.full(layout.shape, number).astype(DTYPES[dtypes[scalar]])
    result = "bool" if op.to_bool else dtype
    if op.name in ("abs", "angle"):
        result = REAL_PARTS.get(dtype, dtype)
    written = arrays[dtypes.index(dtype)]
    in_place = layout.in_place and result == dtype
    out = written if in_place else device.array(result, layout.shape, layout.out)
    params = op.parameters(dtype)
    code = getattr(device.api, f"{family.title()}Op")[op.name]
    more = params.get("value", 1)
    if family != "ternary":
        more = getattr(device.api, f"{family.title()}Params")(**params)
    device.run(case, [out], code, out, *arguments, more=[more])
    device.verify(case, op, out, values, params)


def _inputs(
    op: oracle.Operation, dtypes: list[str], shape: tuple[int, ...], random: np.random.Generator
) -> list[NDArray[Any]]:
    """Inputs that give every outcome of the operation."""
    values = [oracle.inputs(op, DTYPES[dtype], shape, random) for dtype in dtypes]
    if len(values) != 2:
        return values
    a, b = values
    if op.to_bool:
        b = np.where(random.random(shape) < 0.4, a, b)
        zeros = random.random((2, *shape)) < 0.3
        a, b = (np.where(zero, np.zeros_like(x), x) for zero, x in zip(zeros, (a, b), strict=True))
    if op.name in DIVISIONS and dtypes[0] in oracle.INTEGERS:
        b = np.where(b == 0, np.ones_like(b), b)
    if op.name in DIVISIONS and dtypes[0] in ("float16", "bfloat16"):
        # No quotient of two of these is near an integer: PyTorch's kernels round quotients first.
        a = 1.5 * (random.integers(-9, 9, shape) + 0.5)
        b = random.choice([1.5, -1.5, 3.0, -3.0], shape)
    return [np.asarray(a), np.asarray(b)]
