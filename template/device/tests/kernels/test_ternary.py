"""out[...] = op(a[...], b[...], c[...])"""

from __future__ import annotations

import pytest
from kernels import layouts, oracle
from kernels.binary_oracle import TERNARY
from kernels.elementwise import check
from kernels.harness import Device, rng
from kernels.support import Case


@pytest.mark.parametrize(("op", "dtype", "layout"), oracle.by_layout(TERNARY))
def test_ternary(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    check(device, "ternary", op, dtype, layout)


@pytest.mark.parametrize("scalar", [0, 1, 2])
@pytest.mark.parametrize(("op", "dtype"), oracle.by_type(TERNARY))
def test_ternary_with_a_scalar(
    device: Device, op: oracle.Operation, dtype: str, scalar: int
) -> None:
    check(device, "ternary", op, dtype, scalar=scalar)


@pytest.mark.parametrize("dtype", oracle.FLOATING)
def test_lerp_with_weight_1_gives_the_end(device: Device, dtype: str) -> None:
    case = Case("ternary", "lerp", dtype, "scalar_c")
    random = rng(case)
    start, end = (device.array(dtype, (99,), values=random.uniform(-9, 9, 99)) for _ in range(2))
    out = device.array(dtype, (99,))
    code = device.api.TernaryOp.lerp
    device.run(case, [out], code, out, start, end, 1.0, more=[1])
    device.assert_exact(case, out, end.values)


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in TERNARY} == {op.name for op in device.api.TernaryOp}
