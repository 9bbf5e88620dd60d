"""out[...] = op(a[...], b[...], c[...])"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import binary_oracle, layouts, oracle
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case

OPERATIONS = oracle.by_type(binary_oracle.TERNARY)
SCALARS: dict[str, Any] = {"b": True, "u": 3, "i": 3, "f": 1.5, "V": 1.5, "c": 1.5 + 0.5j}
SIZES = oracle.by_size(binary_oracle.TERNARY)


def check(
    device: Device,
    op: oracle.Operation,
    dtype: str,
    layout: layouts.Layout,
    scalar: int | None = None,
) -> None:
    """Runs one case; input number `scalar` is a host number."""
    name = layout.name if scalar is None else f"scalar_{'abc'[scalar]}"
    case = Case("ternary", op.name, dtype, name)
    random = rng(case, layout.shape)
    dtypes = ["bool" if op.name == "where" else dtype, dtype, dtype]
    arrays = [
        device.array(
            dtypes[i],
            layout.shape,
            layout.inputs[i % len(layout.inputs)],
            oracle.inputs(op, DTYPES[dtypes[i]], layout.shape, random),
        )
        for i in range(3)
    ]
    values = [array.values for array in arrays]
    arguments: list[Any] = [*arrays]
    if scalar is not None:
        number = SCALARS[DTYPES[dtypes[scalar]].kind]
        arguments[scalar] = number
        values[scalar] = np.full(layout.shape, number).astype(DTYPES[dtypes[scalar]])
    same = arrays[1] if op.name == "where" else arrays[0]
    out = same if layout.in_place else device.array(dtype, layout.shape, layout.out)
    params = op.parameters(dtype)
    code = device.api.TernaryOp[op.name]
    device.run(case, [out], code, out, *arguments, more=[params.get("value", 1)])
    device.verify(case, op, out, values, params)


@pytest.mark.parametrize("layout", layouts.ELEMENTWISE, ids=str)
@pytest.mark.parametrize(("op", "dtype"), OPERATIONS)
def test_ternary(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    check(device, op, dtype, layout)


@pytest.mark.parametrize("scalar", [0, 1, 2])
@pytest.mark.parametrize(("op", "dtype"), OPERATIONS)
def test_ternary_with_a_scalar(
    device: Device, op: oracle.Operation, dtype: str, scalar: int
) -> None:
    check(device, op, dtype, layouts.CONTIGUOUS, scalar)


@pytest.mark.full
@pytest.mark.parametrize(("op", "dtype", "shape"), SIZES)
def test_ternary_of_any_size(
    device: Device, op: oracle.Operation, dtype: str, shape: tuple[int, ...]
) -> None:
    check(device, op, dtype, layouts.of_shape(shape))


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_lerp_ends_at_the_end(device: Device, dtype: str) -> None:
    case = Case("ternary", "lerp", dtype, "scalar_c")
    random = rng(case)
    start, end = (device.array(dtype, (99,), values=random.uniform(-9, 9, 99)) for _ in range(2))
    out = device.array(dtype, (99,))
    code = device.api.TernaryOp.lerp
    device.run(case, [out], code, out, start, end, 1.0, more=[1])
    device.assert_exact(case, out, end.values)


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in binary_oracle.TERNARY} == {op.name for op in device.api.TernaryOp}
