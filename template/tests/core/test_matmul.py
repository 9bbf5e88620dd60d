"""Matrix products: an unused bias, two dtypes, and a device that is not current."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, needs_two_devices, sample


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


@needs_two_devices
@needs(torch.float32)
def test_product_on_a_device_that_is_not_current() -> None:
    one = sample(3, 3).to(f"{DEVICE}:1")
    result = one @ one
    assert result.device == one.device
    assert_same(result, sample(3, 3) @ sample(3, 3), rtol=1e-5, atol=1e-5)
