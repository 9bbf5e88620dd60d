"""Matrix products: an unused bias, two dtypes, conjugated outputs, zeros without memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, sample


@needs(torch.float32)
def test_beta_of_zero_ignores_nan() -> None:
    bias = torch.full((2, 2), float("nan"), device=DEVICE)
    ones = torch.ones(2, 2, device=DEVICE)
    assert torch.addmm(bias, ones, ones, beta=0).eq(2).all().item()


@needs(torch.float32, torch.float64)
def test_an_error_names_two_dtypes_in_the_order_of_the_arguments() -> None:
    one = torch.ones(2, 2, device=DEVICE)
    with pytest.raises(RuntimeError, match="float != double"):
        torch.mm(one, one.double())
    with pytest.raises(RuntimeError, match="double != float"):
        torch.mm(one.double(), one)


INTO_CONJUGATES: dict[str, Callable[..., Any]] = {
    "mm": lambda a, b, c, out: torch.mm(a, b, out=out),
    "addmm": lambda a, b, c, out: torch.addmm(c, a, b, beta=2j, out=out),
    "addmm_": lambda a, b, c, out: out.copy_(c).addmm_(a, b, alpha=1j),
    "bmm": lambda a, b, c, out: torch.bmm(a[None], b[None], out=out[None]),
    "baddbmm": lambda a, b, c, out: torch.baddbmm(c[None], a[None], b[None], out=out[None]),
    "matmul": lambda a, b, c, out: torch.matmul(a, b, out=out),
    "addmv": lambda a, b, c, out: torch.addmv(c[0], a, b[0], out=out[0]),
}


@needs(torch.complex64)
@pytest.mark.parametrize("name", INTO_CONJUGATES)
def test_a_conjugated_output(name: str) -> None:
    given = [sample(3, 3, dtype=torch.complex64) for _ in range(3)]
    results = []
    for device in ("cpu", DEVICE):
        out = torch.zeros(3, 3, dtype=torch.complex64, device=device)
        INTO_CONJUGATES[name](*(each.to(device) for each in given), out.mH)
        results.append(out)
    assert_same(results[1], results[0], rtol=1e-5, atol=1e-5)


@needs(torch.float32)
@pytest.mark.parametrize("product", [torch.dot, torch.vdot, torch.inner, torch.matmul])
def test_products_have_forward_mode_derivatives(product: Callable[..., torch.Tensor]) -> None:
    left, right = sample(4), sample(4)
    for given, fixed in ((left, right), (right, left)):

        def derivative(device: str, given: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
            constant = fixed.to(device)
            jacobian = torch.func.jacfwd(lambda value: product(value, constant))
            return jacobian(given.to(device))

        expected, actual = (derivative(device, given, fixed) for device in ("cpu", DEVICE))
        assert_same(actual, expected)
