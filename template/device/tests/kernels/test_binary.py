"""out[...] = op(a[...], b[...])"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import binary_oracle, layouts, oracle
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case
from numpy.typing import NDArray

OPERATIONS = oracle.by_type(binary_oracle.BINARY)
WITH_SCALARS = oracle.by_type(op for op in binary_oracle.BINARY if not op.name.endswith("_grad"))
DIVISIONS = ("div_trunc", "div_floor", "remainder", "fmod")
SCALARS: dict[str, Any] = {"b": True, "u": 3, "i": 3, "f": 1.5, "V": 1.5, "c": 1.5 + 0.5j}
SIZES = oracle.by_size(binary_oracle.BINARY)


def operands(
    op: oracle.Operation, dtype: str, shape: tuple[int, ...], random: np.random.Generator
) -> list[NDArray[Any]]:
    """The two inputs, in which the operation's every outcome occurs."""
    a, b = (oracle.inputs(op, DTYPES[dtype], shape, random) for _ in range(2))
    if op.to_bool:
        b = np.where(random.random(shape) < 0.4, a, b)
        zeros = random.random((2, *shape)) < 0.3
        a, b = (np.where(zero, np.zeros_like(x), x) for zero, x in zip(zeros, (a, b), strict=True))
    if op.name in DIVISIONS and dtype in oracle.INTEGERS:
        b = np.where(b == 0, np.ones_like(b), b)
    if op.name in DIVISIONS and dtype in ("float16", "bfloat16"):
        # Quotients of any two of these are not near integers: PyTorch's kernels round them first.
        a = 1.5 * (random.integers(-9, 9, shape) + 0.5)
        b = random.choice([1.5, -1.5, 3.0, -3.0], shape)
    return [np.asarray(a), np.asarray(b)]


def check(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    case = Case("binary", op.name, dtype, layout.name)
    values = operands(op, dtype, layout.shape, rng(case, layout.shape))
    places = [layout.inputs[i % len(layout.inputs)] for i in range(2)]
    a, b = (device.array(dtype, layout.shape, places[i], values[i]) for i in range(2))
    result = "bool" if op.to_bool else dtype
    in_place = layout.in_place and result == dtype
    out = a if in_place else device.array(result, layout.shape, layout.out)
    params = op.parameters(dtype)
    values = [a.values, b.values]
    code = device.api.BinaryOp[op.name]
    device.run(case, [out], code, out, a, b, more=[device.api.BinaryParams(**params)])
    device.verify(case, op, out, values, params)


@pytest.mark.parametrize("layout", layouts.ELEMENTWISE, ids=str)
@pytest.mark.parametrize(("op", "dtype"), OPERATIONS)
def test_binary(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    check(device, op, dtype, layout)


@pytest.mark.parametrize("place", [layouts.contiguous, layouts.stepped])
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(("op", "dtype"), WITH_SCALARS)
def test_binary_with_a_scalar(
    device: Device, op: oracle.Operation, dtype: str, side: str, place: layouts.Placer
) -> None:
    case = Case("binary", op.name, dtype, f"scalar_{side}")
    shape = layouts.MATRIX
    values = operands(op, dtype, shape, rng(case))[0 if side == "b" else 1]
    scalar = SCALARS[DTYPES[dtype].kind]
    array = device.array(dtype, shape, place, values)
    out = device.array("bool" if op.to_bool else dtype, shape, place)
    params = op.parameters(dtype)
    arguments = [array, scalar] if side == "b" else [scalar, array]
    code = device.api.BinaryOp[op.name]
    device.run(case, [out], code, out, *arguments, more=[device.api.BinaryParams(**params)])
    full = np.full(shape, scalar).astype(DTYPES[dtype])
    device.verify(case, op, out, [values, full] if side == "b" else [full, values], params)


@pytest.mark.full
@pytest.mark.parametrize(("op", "dtype", "shape"), SIZES)
def test_binary_of_any_size(
    device: Device, op: oracle.Operation, dtype: str, shape: tuple[int, ...]
) -> None:
    check(device, op, dtype, layouts.of_shape(shape))


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", oracle.INTEGERS)
def test_integer_division_by_zero_fails_at_the_next_synchronisation(
    device: Device, name: str, dtype: str
) -> None:
    shape = (33,)
    one = device.array(dtype, shape, values=np.ones(shape))
    zero = device.array(dtype, shape, values=np.zeros(shape))
    out = device.array(dtype, shape)
    case = Case("binary", name, dtype, "contiguous")
    code = device.api.BinaryOp[name]
    device.run_invalid(
        case, "ZeroDivisionError", code, out, one, zero, more=[device.api.BinaryParams()]
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_scalar_is_compared_as_an_element(device: Device, dtype: str) -> None:
    case = Case("binary", "eq", dtype, "scalar_b")
    array = device.array(dtype, (2,), values=np.asarray([0.1, 0.2]))
    out = device.array("bool", (2,))
    code = device.api.BinaryOp.eq
    device.run(case, [out], code, out, array, 0.1, more=[device.api.BinaryParams()])
    device.assert_exact(case, out, np.asarray([True, False]))


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in binary_oracle.BINARY} == {op.name for op in device.api.BinaryOp}
