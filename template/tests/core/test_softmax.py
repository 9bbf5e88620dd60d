"""softmax and log_softmax against the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import (
    FLOATING,
    assert_same,
    needs,
    needs_two_devices,
    run_python,
    sample,
    supported,
)
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("everything_is_native")

TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.float64: 1e-12}
FUNCTIONS: list[Callable[..., torch.Tensor]] = [torch.softmax, torch.log_softmax]
LAYOUTS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x,
    lambda x: x.transpose(0, 2),
    lambda x: x[:, ::2],
    lambda x: x[:1].expand(4, -1, -1),
]


def compare(function: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor) -> None:
    """Compare the results of ``function`` and its gradients."""
    theirs = values.detach().clone().requires_grad_()
    mine = values.detach().to(DEVICE).requires_grad_()
    expected, actual = function(theirs), function(mine)
    tolerance = TOLERANCE[expected.dtype]
    assert_same(actual, expected, rtol=tolerance, atol=tolerance)
    gradient = sample(*expected.shape, dtype=expected.dtype, seed=3)
    expected.backward(gradient)
    actual.backward(gradient.to(DEVICE))
    assert mine.grad is not None and theirs.grad is not None
    tolerance = 8 * TOLERANCE[values.dtype]
    assert_same(mine.grad, theirs.grad, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
def test_every_dimension_of_every_layout(
    dtype: torch.dtype, function: Callable[..., torch.Tensor]
) -> None:
    values = sample(3, 4, 5, dtype=dtype)
    for layout in LAYOUTS:
        for dim in (0, 1, -1):
            compare(lambda x, f=layout, d=dim: function(f(x), d), values)  # type: ignore[misc]


@needs(torch.float32)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("shape", "dim"), [((), 0), ((1,), 0), ((0,), 0), ((0, 3), 1), ((3, 0), 1), ((7, 3000), 1)]
)
def test_every_shape(
    shape: tuple[int, ...], dim: int, function: Callable[..., torch.Tensor]
) -> None:
    compare(lambda x: function(x, dim), sample(*shape))


@needs(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("function", [functional.softmax, functional.log_softmax])
def test_result_of_another_dtype(function: Callable[..., torch.Tensor]) -> None:
    compare(lambda x: function(x, dim=1, dtype=torch.float32), sample(4, 9, dtype=torch.bfloat16))


@needs(torch.float32)
def test_second_derivative() -> None:
    values = sample(3, 5, dtype=torch.float32)
    results = []
    for device in ("cpu", DEVICE):
        x = values.to(device).requires_grad_()
        (first,) = torch.autograd.grad((x.softmax(1) ** 2).sum(), x, create_graph=True)
        results.append(torch.autograd.grad(first.sin().sum(), x)[0])
    assert_same(results[1], results[0], rtol=1e-4, atol=1e-5)


@needs(torch.float32)
def test_out_is_written_in_its_own_layout() -> None:
    values = sample(4, 5)
    out = torch.empty(5, 4, device=DEVICE).T
    assert torch.softmax(values.to(DEVICE), 1, out=out) is out
    assert_same(out, values.softmax(1))


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


@needs(torch.float32)
def test_out_may_be_the_input() -> None:
    run_python(f"""
        import torch
        values = torch.randn(4, 5)
        mine = values.to("{DEVICE}")
        torch.softmax(mine, 1, out=mine)
        torch.testing.assert_close(mine.cpu(), values.softmax(1))
    """)
