"""Numbers that compiled functions compute from sizes that change."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import has_function
from torch.nn import functional

pytestmark = pytest.mark.skipif(
    not has_function("modules", "load_module") or torch.__version__ < "2.13",
    reason="the device library takes no kernels, or Inductor is too old to write them",
)


@pytest.mark.parametrize(
    "number",
    [
        lambda n: n**0.5,
        lambda n: float(n) ** 2,
        lambda n: n**-1.5,
        lambda n: 2**n,
        lambda n: round(n / 7, 2),
        lambda n: round(n / 7),
        lambda n: math.sqrt(n),
        lambda n: math.log2(n),
        lambda n: math.floor(n / 2.5) + math.ceil(n / 2.5) + math.trunc(n / 2.5),
        lambda n: min(n / 2, 3.0) + max(n % 3, -n),
    ],
    ids=range(10),
)
def test_numbers_computed_from_sizes(number: Callable[[int], float]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.full((3,), float(number(x.size(-1))), device=x.device) + x.sum()

    torch._dynamo.reset()
    compiled = torch.compile(function, dynamic=True)
    for size in (8, 21):
        x = torch.ones(2, size)
        torch.testing.assert_close(compiled(x.to(DEVICE)).cpu(), function(x))


def test_attention_with_changing_head_sizes() -> None:
    def attend(x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x, x)

    torch._dynamo.reset()
    compiled = torch.compile(attend)
    for size in (8, 16, 32):
        x = torch.randn(1, 2, 5, size)
        torch.testing.assert_close(compiled(x.to(DEVICE)).cpu(), attend(x))
