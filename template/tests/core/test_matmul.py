"""Matrix products: factors that lie differently, conjugates, devices."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import assert_same, compare, needs, needs_two_devices, sample

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@needs(torch.float32)
def test_layouts_of_the_factors() -> None:
    one, other = sample(8, 9), sample(9, 10, seed=1)
    compare(lambda x, y: x[::2, 1:] @ y[1:, ::3], one, other, **CLOSE)
    compare(lambda x, y: x[:1].expand(4, -1) @ y, one, other, **CLOSE)
    one, other = sample(3, 4, 5).transpose(1, 2), sample(3, 6, 4, seed=1).transpose(1, 2)
    compare(torch.bmm, one, other, **CLOSE)


@needs(torch.float32)
def test_beta_of_zero_ignores_nan() -> None:
    bias = torch.full((2, 2), float("nan"), device=DEVICE)
    ones = torch.ones(2, 2, device=DEVICE)
    assert torch.addmm(bias, ones, ones, beta=0).eq(2).all().item()


@needs(torch.complex64)
def test_conjugate_factors() -> None:
    one, other = sample(4, 5, dtype=torch.complex64), sample(4, 6, dtype=torch.complex64, seed=1)
    compare(lambda x, y: x.mH @ y, one, other, **CLOSE)
    compare(lambda x, y: x.conj().T.imag @ y.real, one, other, **CLOSE)


@needs(torch.float32)
def test_factors_on_different_devices_are_refused() -> None:
    for use, shape in ((torch.mm, (2, 2)), (torch.bmm, (1, 2, 2)), (torch.dot, (2,))):
        one, other = torch.ones(shape, device=DEVICE), torch.ones(shape)
        for factors in ((one, other), (other, one)):
            with pytest.raises(RuntimeError, match="same device"):
                use(*factors)


@needs_two_devices
@needs(torch.float32)
def test_factors_on_two_devices_are_refused() -> None:
    one, other = (torch.ones(1, 2, 2, device=f"{DEVICE}:{index}") for index in (0, 1))
    with pytest.raises(RuntimeError, match="device"):
        torch.bmm(one, other)


@needs_two_devices
@needs(torch.float32)
def test_product_on_a_device_that_is_not_current() -> None:
    one = sample(3, 3).to(f"{DEVICE}:1")
    result = one @ one
    assert result.device == one.device
    assert_same(result, sample(3, 3) @ sample(3, 3), rtol=1e-5, atol=1e-5)
