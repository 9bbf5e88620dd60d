"""Matrix products: an unused bias, and two dtypes."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import needs


@needs(torch.float32)
def test_beta_of_zero_ignores_nan() -> None:
    bias = torch.full((2, 2), float("nan"), device=DEVICE)
    ones = torch.ones(2, 2, device=DEVICE)
    assert torch.addmm(bias, ones, ones, beta=0).eq(2).all().item()


@needs(torch.float32, torch.float64)
def test_two_dtypes_are_named_in_the_order_of_the_arguments() -> None:
    one = torch.ones(2, 2, device=DEVICE)
    with pytest.raises(RuntimeError, match="float != double"):
        torch.mm(one, one.double())
    with pytest.raises(RuntimeError, match="double != float"):
        torch.mm(one.double(), one)
