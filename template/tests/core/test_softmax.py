"""softmax and log_softmax of scalars, of nothing and of long rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import close, compare, compare_gradients, needs, needs_two_devices, sample
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("everything_is_native")

FUNCTIONS: list[Callable[..., torch.Tensor]] = [torch.softmax, torch.log_softmax]


@needs(torch.float32)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("shape", "dim"), [((), 0), ((1,), 0), ((0,), 0), ((0, 3), 1), ((3, 0), 1), ((7, 3000), 1)]
)
def test_every_shape(
    shape: tuple[int, ...], dim: int, function: Callable[..., torch.Tensor]
) -> None:
    compare(lambda x: function(x, dim), sample(*shape), **close(torch.float32))
    compare_gradients(lambda x: function(x, dim), sample(*shape))


@needs(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax])
def test_result_of_another_dtype(function: Callable[..., torch.Tensor]) -> None:
    def widened(x: torch.Tensor) -> torch.Tensor:
        return function(x, dim=1, dtype=torch.float32)

    values = sample(4, 9, dtype=torch.bfloat16)
    compare(widened, values, **close(torch.float32))
    compare_gradients(widened, values, **close(torch.bfloat16))


@needs(torch.float32)
def test_a_dimension_that_does_not_exist_is_refused() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(torch.ones(2, 2, device=DEVICE), 2)


@needs_two_devices
@needs(torch.float32)
def test_gradient_on_another_device_is_refused() -> None:
    one, other = (torch.ones(2, 2, device=f"{DEVICE}:{index}") for index in (0, 1))
    with pytest.raises(RuntimeError, match="device"):
        torch.ops.aten._softmax_backward_data(one, other, 1, torch.float32)
