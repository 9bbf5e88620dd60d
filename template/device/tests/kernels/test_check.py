"""Assertions for which the host does not wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle
from kernels.harness import Device
from kernels.support import Case

MESSAGE = "the scores are not finite: 50%s"


def holding(dtype: str) -> list[Any]:
    """Values that are not zero."""
    if dtype == "bool":
        return [True]
    if dtype in oracle.FLOATING:
        return [1, 0.5, np.nan, np.inf]
    return [1, 3, 1j] if dtype in oracle.COMPLEX else [1, 100]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("dtype", oracle.ALL)
def test_a_true_condition_changes_nothing(
    device: Device, dtype: str, shape: tuple[int, ...]
) -> None:
    for value in holding(dtype):
        condition = device.array(dtype, shape, layouts.offset, np.full(shape, value))
        device.run(Case("check", "-", dtype, "offset"), [condition], condition, MESSAGE)
        assert condition.unchanged()


@pytest.mark.parametrize("dtype", oracle.ALL)
def test_a_false_condition_fails_at_the_next_synchronisation(device: Device, dtype: str) -> None:
    condition = device.array(dtype, (1,), values=np.zeros(1))
    case = Case("check", "-", dtype, "contiguous")
    device.run_invalid(case, MESSAGE, condition, MESSAGE)


def test_a_probe_of_a_false_condition_does_not_fail(device: Device) -> None:
    condition = device.array("float32", (), values=np.zeros(()))
    device.api.check(device.stream, condition.view, MESSAGE, probe=True)
    device.api.synchronize(device.stream)
