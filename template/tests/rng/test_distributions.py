"""Arguments of random operators: ranges, limits, tensors of parameters, outputs.

test_philox.py tests the numbers themselves, and device/tests/kernels their distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from backend import DEVICE
from support import FLOATING, needs, supported

COUNT = 20_000
FLOATS = supported(FLOATING)

Draw = Callable[[torch.Tensor], torch.Tensor]


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=DEVICE)


def drawn(draw: Draw, dtype: torch.dtype) -> np.ndarray:
    values = draw(empty(COUNT, dtype=dtype)).cpu()
    return values.to(torch.float64 if dtype.is_floating_point else dtype).numpy()


class TestContinuous:
    @pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize == 2])
    def test_uniform_reaches_the_values_of_a_16_bit_dtype(self, dtype: torch.dtype) -> None:
        """A wide range has few values if only the fraction bits of the dtype are drawn."""
        mine, theirs = (
            torch.empty(10_000, dtype=dtype, device=device).uniform_(-100, 100).unique().numel()
            for device in (DEVICE, "cpu")
        )
        assert mine > 0.9 * theirs

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_normal_of_tensors(self, dtype: torch.dtype) -> None:
        mean = torch.tensor([[-100.0], [0.0], [100.0]], dtype=dtype, device=DEVICE)
        std = torch.tensor([1.0, 10.0], dtype=dtype, device=DEVICE).repeat_interleave(3000)
        torch.manual_seed(1)
        both = torch.normal(mean, std)
        assert both.dtype is dtype
        torch.manual_seed(1)
        standard = torch.empty(3, 6000, dtype=dtype, device=DEVICE).normal_()
        torch.testing.assert_close(both, mean + std * standard)
        assert torch.normal(mean, 0.0).cpu().equal(mean.cpu())
        shifted = torch.normal(5.0, torch.zeros(4, dtype=dtype, device=DEVICE))
        assert shifted.tolist() == [5.0] * 4
        out = empty(0, dtype=dtype)
        torch.normal(mean, std[:1], out=out)
        assert out.shape == (3, 1)


@pytest.mark.parametrize("dtype", supported(torch.float16, torch.bfloat16))
def test_an_upper_bound_that_the_dtype_rounds_up_is_not_reached(dtype: torch.dtype) -> None:
    high = 65504 if dtype is torch.float16 else 70000
    with pytest.warns(UserWarning, match="out of bounds"):
        values = drawn(lambda t: t.random_(0, high), dtype)
    assert values.max() < high


@pytest.mark.parametrize("dtype", supported(torch.bool))
def test_random_booleans_below_1_are_false(dtype: torch.dtype) -> None:
    assert not drawn(lambda t: t.random_(1), dtype).any()


class TestBernoulli:
    @needs(torch.float32)
    def test_tensor_may_be_its_own_probability(self) -> None:
        tensor = torch.full((COUNT,), 0.25, device=DEVICE)
        torch.manual_seed(1)
        expected = torch.bernoulli(tensor)
        torch.manual_seed(1)
        assert tensor.bernoulli_(tensor).equal(expected)

    @needs(torch.float32)
    def test_probabilities_may_be_on_the_cpu(self) -> None:
        assert empty(3).bernoulli_(torch.tensor([0.0, 1.0, 0.0])).tolist() == [0, 1, 0]
