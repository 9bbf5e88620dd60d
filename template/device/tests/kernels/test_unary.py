"""out[...] = op(in[...])"""

from __future__ import annotations

import pytest
from kernels import layouts, oracle
from kernels.elementwise import check
from kernels.harness import Device
from kernels.unary_oracle import UNARY


@pytest.mark.parametrize(("op", "dtype", "layout"), oracle.by_layout(UNARY))
def test_unary(device: Device, op: oracle.Operation, dtype: str, layout: layouts.Layout) -> None:
    check(device, "unary", op, dtype, layout)


def test_every_operation_is_tested(device: Device) -> None:
    assert {op.name for op in UNARY} == {op.name for op in device.api.UnaryOp}
