"""Assertions that the host does not wait for."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import natively, supported

DTYPES = supported(torch.bool, torch.int64, torch.float32, torch.complex64)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_true_condition_raises_nothing(dtype: torch.dtype) -> None:
    with natively():
        torch._assert_async(torch.ones((), dtype=dtype, device=DEVICE))
        torch._assert_async(torch.ones(1, 1, dtype=dtype, device=DEVICE), "the reason")
        backend.synchronize()


@pytest.mark.native
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_false_condition_raises_when_results_are_read(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    condition = torch.zeros(shape, dtype=dtype, device=DEVICE)
    with natively():
        torch._assert_async(condition, "50% of the scores are not finite")
        with pytest.raises(RuntimeError, match="50% of the scores are not finite"):
            condition.cpu()
        backend.acknowledge_failure()
        torch._assert_async(condition)
        with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value"):
            backend.synchronize()


def test_the_functional_assertion_returns_its_token() -> None:
    condition, token = torch.ones(1, device=DEVICE), torch.full((2,), 3.0, device=DEVICE)
    result = torch.ops.aten._functional_assert_async.msg(condition, "the reason", token)
    assert result.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("count", [0, 2])
def test_a_condition_must_have_one_element(count: int) -> None:
    for device in ("cpu", DEVICE):
        with pytest.raises(RuntimeError, match="Boolean value of Tensor with"):
            torch._assert_async(torch.ones(count, device=device))
