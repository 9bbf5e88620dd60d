"""warm_up prepares the launches of a function and runs no kernel."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend


def test_warm_up_runs_no_kernel() -> None:
    x = torch.ones(16, device=DEVICE)
    backend.warm_up(lambda y, *, times: y.mul_(times), x, times=3)
    assert x.tolist() == [1] * 16


def test_warm_up_of_a_function_that_cannot_be_captured_raises() -> None:
    x = torch.ones(16, device=DEVICE)
    with pytest.raises(RuntimeError, match="cannot be recorded"):
        backend.warm_up(lambda: x.sum().item())
    with pytest.raises(ZeroDivisionError):
        backend.warm_up(lambda: 1 // 0)
    assert (x + 1).tolist() == [2] * 16
