"""out[...] = op(a[...], b[...])"""

from __future__ import annotations

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.binary_oracle import BINARY
from kernels.elementwise import DIVISIONS, check
from kernels.harness import Device
from kernels.support import Case

STEPPED = layouts.Layout("stepped", layouts.MATRIX, layouts.stepped, (layouts.stepped,))
WITH_SCALARS = oracle.by_type(op for op in BINARY if not op.name.endswith("_grad"))


@pytest.mark.parametrize(("op", "dtype", "layout"), oracle.by_layout(BINARY))
def test_binary(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    check(device, "binary", op, dtype, layout)


@pytest.mark.parametrize("layout", [layouts.CONTIGUOUS, STEPPED], ids=str)
@pytest.mark.parametrize("scalar", [0, 1])
@pytest.mark.parametrize(("op", "dtype"), WITH_SCALARS)
def test_binary_with_a_scalar(
    device: Device, op: oracle.Operation, dtype: str, scalar: int, layout: layouts.Layout
) -> None:
    check(device, "binary", op, dtype, layout, scalar)


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
    assert {op.name for op in BINARY} == {op.name for op in device.api.BinaryOp}
