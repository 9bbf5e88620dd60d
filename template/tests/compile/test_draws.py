"""Random numbers of compiled kernels and of eager operators with the same seed are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import has_function, supported
from torch import Tensor
from torch._inductor.utils import run_and_get_code
from torch.nn import functional

pytestmark = [
    pytest.mark.skipif(
        not hasattr(backend, "default_generators"), reason="generated without random numbers"
    ),
    pytest.mark.skipif(
        not has_function("modules", "load_module") or torch.__version__ < "2.13",
        reason="the device library takes no kernels, or Inductor is too old to write them",
    ),
]
Function = Callable[..., Any]


def several(x: Tensor) -> Any:
    """Every operator whose random numbers kernels draw."""
    dropped = functional.dropout(x, 0.3)
    chosen = torch.empty_like(x).bernoulli_(0.2)
    noise = torch.rand_like(x), torch.randn_like(x), torch.rand(7, 3, device=x.device)
    return (
        dropped,
        chosen,
        functional.dropout(dropped, 0.5),
        torch.randn(5, device=x.device),
        *noise,
    )


def kernels_and_operators(x: Tensor) -> Any:
    """Random numbers of kernels and of operators, in the same order."""
    first = functional.dropout(x, 0.3)
    whole = torch.randint(0, 99, (5, 3), device=x.device)
    second = torch.rand_like(x)
    wide = torch.rand(6, dtype=torch.float64, device=x.device)
    picked = torch.multinomial(torch.softmax(x, -1), 2)
    return first, whole, second, wide, picked, torch.bernoulli(second)


def trained(x: Tensor) -> Any:
    """The backward pass uses the numbers that the forward pass drew."""
    weight = torch.ones(x.shape[-1], 8, device=x.device, dtype=x.dtype, requires_grad=True)
    loss = (functional.dropout(x @ weight, 0.5).tanh() * 3).sum()
    return torch.autograd.grad(loss, weight)


def without_input(x: Tensor) -> Any:
    """Draws without a floating-point input."""
    return torch.rand(3, 5, device=x.device) + 1


def state() -> list[int]:
    return backend.get_rng_state().tolist()


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
@pytest.mark.parametrize("function", [several, kernels_and_operators, trained, without_input])
def test_compiled_functions_draw_the_numbers_of_eager_calls(
    function: Function, mode: str | None
) -> None:
    torch._dynamo.reset()
    inputs = torch.randn(33, 10, device=DEVICE), torch.randn(10, 33, device=DEVICE).t()
    compiled = torch.compile(function, mode=mode)
    for seed in range(4):  # in the later ones a graph is replayed
        for x in inputs:
            torch.manual_seed(seed)
            expected = function(x)
            end = state()
            torch.manual_seed(seed)
            actual = compiled(x)
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
            assert state() == end


@pytest.mark.parametrize("dtype", supported(torch.float16, torch.bfloat16))
def test_compiled_16_bit_draws_equal_eager_draws(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    x = torch.randn(19, 21, device=DEVICE, dtype=dtype)

    def function(x: Tensor) -> Any:
        return torch.rand_like(x), torch.randn_like(x), functional.dropout(x, 0.4)

    torch.manual_seed(3)
    expected = function(x)
    torch.manual_seed(3)
    # Two math libraries compute the normal numbers and may round differently.
    torch.testing.assert_close(torch.compile(function)(x), expected, rtol=1e-2, atol=1e-3)


def test_kernels_of_a_graph_share_one_philox_state() -> None:
    torch._dynamo.reset()

    def function(x: Tensor) -> Tensor:
        for _ in range(4):
            x = functional.dropout(torch.relu(x), 0.1)
        return x

    _, (code,) = run_and_get_code(torch.compile(function), torch.ones(64, 64, device=DEVICE))
    assert code.count("philox_state.default(") == 1
    assert "native_dropout.default" not in code


def test_each_call_draws_new_numbers() -> None:
    torch._dynamo.reset()
    x = torch.ones(50, 50, device=DEVICE)
    compiled = torch.compile(lambda x: functional.dropout(x, 0.5))
    one, other = compiled(x), compiled(x)
    assert not torch.equal(one, other)
    kept = (one != 0).float().mean().item()
    assert 0.4 < kept < 0.6


def test_dynamic_sizes_draw_the_numbers_of_eager_calls() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: functional.dropout(x, 0.5) + 1, dynamic=True)
    for size in (5, 9, 64):
        x = torch.randn(size, 3, device=DEVICE)
        torch.manual_seed(1)
        expected = functional.dropout(x, 0.5) + 1
        torch.manual_seed(1)
        torch.testing.assert_close(compiled(x), expected)
