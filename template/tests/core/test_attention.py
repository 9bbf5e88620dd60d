"""Scaled dot-product attention against the CPU, and which implementation is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import (
    FLOATING,
    assert_same,
    may_fall_back,
    needs,
    sample,
    supported,
)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-5, torch.float64: 1e-12}
FUSED = "aten::_scaled_dot_product_fused_attention_overrideable"
EFFICIENT = "aten::_scaled_dot_product_efficient_attention"
Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def make(
    dtype: torch.dtype = torch.float32,
    heads: tuple[int, int] = (3, 3),
    rows: tuple[int, int] = (5, 7),
    width: int = 4,
) -> Inputs:
    """Return query, key, value. `heads` and `rows`: one number for query, one for key and value."""
    shapes = [(2, heads[kind], rows[kind], width) for kind in (0, 1, 1)]
    query, key, value = (
        sample(*shape, dtype=dtype, low=-2, high=2, seed=seed) for seed, shape in enumerate(shapes)
    )
    return query, key, value


@pytest.fixture
def fused() -> None:
    """Skip a test of the fused operators if the device declines them and fallbacks are allowed."""
    query, key, value = (tensor.to(DEVICE) for tensor in make())
    try:
        with sdpa_kernel(SDPBackend.OVERRIDEABLE):
            attention(query, key, value)
    except RuntimeError as error:
        if "No viable backend" in str(error) and may_fall_back():
            pytest.skip(f"the device has no kernel of attention for this: {error}")
        raise


def used(function: Callable[[], Any]) -> set[str]:
    """Return the names of the operators that ``function`` calls."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        function()
    return {event.key for event in profiler.key_averages()}


def compare(inputs: Inputs, by: str = FUSED, **options: Any) -> None:
    """Compare results and gradients, and check that the operator ``by`` ran."""
    dtype = inputs[0].dtype
    theirs = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    mine = [tensor.detach().to(DEVICE).requires_grad_() for tensor in inputs]

    device_options = {
        name: option.to(DEVICE) if isinstance(option, torch.Tensor) else option
        for name, option in options.items()
    }
    expected, actual = attention(*theirs, **options), attention(*mine, **device_options)
    tolerance = TOLERANCE[dtype]
    assert_same(actual, expected, rtol=tolerance, atol=tolerance)
    gradient = sample(*expected.shape, dtype=dtype, low=-1, high=1, seed=9)
    expected.backward(gradient)
    actual.backward(gradient.to(DEVICE))
    for here, there in zip(mine, theirs, strict=True):
        assert here.grad is not None and there.grad is not None
        assert_same(here.grad, there.grad, rtol=8 * tolerance, atol=8 * tolerance)
    with torch.no_grad():
        assert may_fall_back() or by in used(lambda: attention(*mine, **device_options))


@pytest.mark.usefixtures("fused")
def test_the_result_has_the_strides_of_the_query() -> None:
    inputs = [tensor.transpose(1, 2).contiguous().transpose(1, 2).to(DEVICE) for tensor in make()]
    assert attention(*inputs).transpose(1, 2).is_contiguous()


def test_gradient_of_the_mask() -> None:
    results = []
    for device in ("cpu", DEVICE):
        query, key, value = (tensor.to(device) for tensor in make())
        bias = sample(3, 1, 7, seed=4).to(device).requires_grad_()
        attention(query, key, value, attn_mask=bias).sin().sum().backward()
        results.append(bias.grad)
    assert results[0] is not None and results[1] is not None
    assert_same(results[1], results[0], rtol=1e-4, atol=1e-5)


def test_results_without_a_gradient() -> None:
    inputs = [tensor.to(DEVICE).requires_grad_() for tensor in make()]
    result = torch._C._functions.UndefinedGrad()(attention(*inputs))
    gradients = torch.autograd.grad(result, inputs, torch.ones_like(result), allow_unused=True)
    assert gradients == (None, None, None)


def math_only(inputs: Inputs, **options: Any) -> set[str]:
    """Compare the result with the CPU's, and return the operators used."""
    mine = [tensor.to(DEVICE) for tensor in inputs]
    actual: list[torch.Tensor] = []
    names = used(lambda: actual.append(attention(*mine, **options)))
    with sdpa_kernel(SDPBackend.MATH):
        expected = attention(*inputs, **options)
    assert_same(actual[0], expected, rtol=1e-4, atol=1e-5)
    return names


@pytest.mark.usefixtures("fused")
def test_sdpa_kernel_selects_the_operator() -> None:
    with sdpa_kernel(SDPBackend.MATH):
        assert FUSED not in math_only(make())
    with sdpa_kernel(SDPBackend.OVERRIDEABLE):
        assert FUSED in math_only(make())
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.OVERRIDEABLE]):
        assert FUSED in math_only(make())
    inputs = [tensor.to(DEVICE) for tensor in make()]
    with (
        sdpa_kernel(SDPBackend.FLASH_ATTENTION),
        pytest.raises(RuntimeError, match=r"No viable backend.*OVERRIDEABLE.*SDPBackend.MATH"),
    ):
        attention(*inputs)
    with (
        sdpa_kernel(SDPBackend.OVERRIDEABLE),
        pytest.raises(RuntimeError, match=r"No viable backend.*four dimensions that fit"),
    ):
        attention(*[tensor[0, 0] for tensor in inputs])


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize("kind", ["plain", "causal", "mask"])
def test_the_memory_efficient_operator_can_be_selected(dtype: torch.dtype, kind: str) -> None:
    mask = sample(5, 7, dtype=dtype, low=-1, high=1, seed=4) if kind == "mask" else None
    # Of the two, the CPU has only MATH.
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        compare(make(dtype), by=EFFICIENT, attn_mask=mask, is_causal=kind == "causal")


@pytest.mark.parametrize(
    "inputs",
    [
        (sample(5, 4), sample(7, 4), sample(7, 4)),
        (sample(2, 3, 5, 4), sample(1, 3, 7, 4), sample(2, 3, 7, 4)),
        (sample(2, 3, 0, 4), sample(2, 3, 7, 4), sample(2, 3, 7, 4)),
    ],
)
def test_other_shapes_use_composed_operators(inputs: Inputs) -> None:
    assert FUSED not in math_only(inputs)


def test_dropout() -> None:
    if not hasattr(backend, "default_generators"):
        pytest.skip("generated without generators of the device")
    inputs = [tensor.to(DEVICE).requires_grad_() for tensor in make(rows=(64, 64))]

    def run(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        result = attention(*inputs, dropout_p=0.4)
        return [result, *torch.autograd.grad(result.sum(), inputs)]

    one, again, other = run(1), run(1), run(2)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0], other[0])
    assert may_fall_back() or FUSED in used(lambda: run(1))
    # The expectation over many draws is the result without dropout.
    with torch.no_grad():
        mean = torch.stack([attention(*inputs, dropout_p=0.4) for _ in range(200)]).mean(0)
        difference = (mean - attention(*inputs)).abs().mean().item()
    assert difference < 0.03
    # With values of ones, the results are the kept probabilities: dropout is its own gradient.
    query, key, _ = inputs
    ones = torch.ones(2, 3, 64, 4, device=DEVICE, requires_grad=True)
    torch.manual_seed(3)
    result = attention(query, key, ones, dropout_p=0.4)
    (gradient,) = torch.autograd.grad(result.sum(), ones)
    torch.testing.assert_close(gradient.sum().cpu(), result.sum().cpu(), rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("fused")
def test_a_seed_on_the_device_is_refused() -> None:
    query, key, value = (tensor.to(DEVICE) for tensor in make())
    out, logsumexp, *_ = torch.ops.aten._scaled_dot_product_fused_attention_overrideable(
        query, key, value
    )
    options = [True] * 3 + [False]
    arguments = (
        out,
        query,
        key,
        value,
        None,
        options,
        out,
        logsumexp,
        None,
        None,
        5,
        7,
        0.5,
        False,
    )
    number = torch.zeros((), dtype=torch.int64)
    for seed, offset in ((number.to(DEVICE), number), (number, number.to(DEVICE))):
        with pytest.raises(RuntimeError, match="on cpu"):
            torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward(
                *arguments, seed, offset
            )


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("heads", [(4, 4), (4, 2)], ids=["each its own", "grouped"])
def test_flops_are_counted(heads: tuple[int, int]) -> None:
    """As PyTorch counts those of CUDA's fused kernels: two products forward, five backward."""
    inputs = [tensor.to(DEVICE).requires_grad_() for tensor in make(heads=heads, width=6)]
    with FlopCounterMode(display=False) as counter:
        attention(*inputs, enable_gqa=heads[0] != heads[1]).sum().backward()
    batch, (rows, columns), width = 2, (5, 7), 6
    product = 2 * batch * heads[0] * rows * columns * width
    assert counter.get_total_flops() == (2 + 5) * product
