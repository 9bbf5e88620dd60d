"""Dropout: drawn on the device, with the same mask in the backward pass and in checkpoints."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import FLOATING, needs, supported
from torch.utils.checkpoint import checkpoint

COUNT = 20_000


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype, device=DEVICE, requires_grad=True)


@pytest.mark.parametrize("dtype", supported(FLOATING))
@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_kept_elements_are_scaled(dtype: torch.dtype, p: float) -> None:
    torch.manual_seed(1)
    result = torch.nn.functional.dropout(ones(COUNT, dtype=dtype), p)
    assert result.dtype is dtype
    values = result.detach().cpu()
    kept = values != 0
    torch.manual_seed(1)
    assert kept.equal(torch.empty(COUNT, dtype=dtype, device=DEVICE).bernoulli_(1 - p).cpu() != 0)
    scale = torch.full((int(kept.sum()),), 1 / (1 - p), dtype=dtype)
    torch.testing.assert_close(values[kept], scale)


@pytest.mark.parametrize("dtype", supported(FLOATING))
def test_gradient_has_the_mask_of_the_forward_pass(dtype: torch.dtype) -> None:
    values = ones(COUNT, dtype=dtype)
    result = torch.nn.functional.dropout(values, 0.3)
    result.sum().backward()
    assert values.grad is not None
    assert values.grad.cpu().equal(result.detach().cpu())


@needs(torch.float32, torch.bool)
def test_native_dropout_gives_the_mask() -> None:
    values = torch.randn(COUNT, device=DEVICE)
    result, mask = torch.native_dropout(values, 0.25, True)
    assert mask.dtype is torch.bool
    expected = values.cpu() * mask.cpu() / 0.75
    torch.testing.assert_close(result.cpu(), expected)
    gradient = torch.ops.aten.native_dropout_backward(values, mask, 1 / 0.75)
    torch.testing.assert_close(gradient.cpu(), expected)


@needs(torch.float32, torch.bool)
def test_native_dropout_without_training_keeps_all_elements() -> None:
    values = torch.randn(10, device=DEVICE)
    before = backend.get_rng_state()
    result, mask = torch.native_dropout(values, 0.25, False)
    assert result.cpu().equal(values.cpu())
    assert mask.all()
    assert torch.nn.functional.dropout(values, 0.25, training=False) is values
    assert backend.get_rng_state().equal(before)


@needs(torch.float32)
def test_probabilities_0_and_1() -> None:
    values = ones(100)
    nothing = torch.nn.functional.dropout(values, 1.0)
    assert nothing.eq(0).all()
    nothing.sum().backward()
    assert values.grad is not None
    assert values.grad.eq(0).all()
    assert torch.nn.functional.dropout(values, 0.0).eq(1).all()
    assert torch.nn.functional.dropout(ones(0), 0.5).shape == (0,)


@needs(torch.float32)
@pytest.mark.usefixtures("native_random")
def test_results_do_not_depend_on_strides() -> None:
    values = torch.randn(30, 40, device=DEVICE)
    backend.manual_seed(9)
    transposed = torch.nn.functional.dropout(values.t(), 0.5)
    backend.manual_seed(9)
    plain = torch.nn.functional.dropout(values.t().contiguous(), 0.5)
    assert transposed.cpu().equal(plain.cpu())


@needs(torch.float32)
@pytest.mark.parametrize(
    "name", ["dropout1d", "dropout2d", "alpha_dropout", "feature_alpha_dropout", "rrelu"]
)
def test_related_functions_draw_on_the_device(name: str) -> None:
    function = getattr(torch.nn.functional, name)
    values = torch.randn(4, 30, 8, 8)[..., 0 if name == "dropout1d" else slice(None)].to(DEVICE)
    cpu = torch.get_rng_state()
    backend.manual_seed(9)
    first = function(values, training=True).cpu()
    second = function(values, training=True).cpu()
    backend.manual_seed(9)
    assert function(values, training=True).cpu().equal(first)
    assert not second.equal(first)
    assert torch.get_rng_state().equal(cpu)


@needs(torch.float32)
@pytest.mark.parametrize("p", [0.2, 0.5])
def test_in_place(p: float) -> None:
    values = torch.ones(COUNT, device=DEVICE)
    assert torch.nn.functional.dropout(values, p, inplace=True) is values
    assert values.unique().tolist() == pytest.approx([0, 1 / (1 - p)])


class TestCheckpoint:
    pytestmark = needs(torch.float32)

    @staticmethod
    def block(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(values * 2, 0.5).sin()

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_repeats_the_dropout_mask(self, reentrant: bool) -> None:
        torch.manual_seed(5)
        plain = torch.linspace(1, 2, 1000, device=DEVICE).requires_grad_()
        expected = self.block(plain)
        expected.sum().backward()
        torch.manual_seed(5)
        saved = torch.linspace(1, 2, 1000, device=DEVICE).requires_grad_()
        result = checkpoint(self.block, saved, use_reentrant=reentrant)
        torch.nn.functional.dropout(saved.detach())
        result.sum().backward()
        assert result.detach().cpu().equal(expected.detach().cpu())
        assert plain.grad is not None
        assert saved.grad is not None
        assert saved.grad.cpu().equal(plain.grad.cpu())
        assert 0 < saved.grad.ne(0).sum() < 1000

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_backward_keeps_the_generator_state(self, reentrant: bool) -> None:
        values = ones(100)
        result = checkpoint(self.block, values, use_reentrant=reentrant)
        before = backend.get_rng_state()
        result.sum().backward()
        assert backend.get_rng_state().equal(before)
