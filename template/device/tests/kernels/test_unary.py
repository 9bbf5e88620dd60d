"""out[...] = op(in[...])"""

from __future__ import annotations

import pytest
from kernels import layouts, oracle, unary_oracle
from kernels.harness import DTYPES, Device, rng
from kernels.support import Case

OPERATIONS = oracle.by_type(unary_oracle.UNARY)
SIZES = oracle.by_size(unary_oracle.UNARY)


def out_dtype(op: oracle.Operation, dtype: str) -> str:
    if op.to_bool:
        return "bool"
    if op.name in ("abs", "angle"):
        return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return dtype


def check(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    case = Case("unary", op.name, dtype, layout.name)
    values = oracle.inputs(op, DTYPES[dtype], layout.shape, rng(case, layout.shape))
    source = device.array(dtype, layout.shape, layout.inputs[0], values)
    result = out_dtype(op, dtype)
    in_place = layout.in_place and result == dtype
    out = source if in_place else device.array(result, layout.shape, layout.out)
    params = op.parameters(dtype)
    values = source.values
    code = device.api.UnaryOp[op.name]
    device.run(case, [out], code, out, source, more=[device.api.UnaryParams(**params)])
    device.verify(case, op, out, [values], params)


@pytest.mark.parametrize("layout", layouts.ELEMENTWISE, ids=str)
@pytest.mark.parametrize(("op", "dtype"), OPERATIONS)
def test_unary(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    check(device, op, dtype, layout)


@pytest.mark.full
@pytest.mark.parametrize(("op", "dtype", "shape"), SIZES)
def test_unary_of_any_size(
    device: Device, op: oracle.Operation, dtype: str, shape: tuple[int, ...]
) -> None:
    check(device, op, dtype, layouts.of_shape(shape))


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in unary_oracle.UNARY} == {op.name for op in device.api.UnaryOp}
