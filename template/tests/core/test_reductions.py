"""Reductions and scans: special values, precision and memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from core.comparisons import close
from support import FLOATING, assert_same, is_simulator, needs, sample, supported


@needs(torch.float32)
@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "argmax", "norm", "logsumexp"])
def test_empty_tensors_reduce_as_on_the_cpu(name: str, dim: int | None) -> None:
    function = functools.partial(getattr(torch, name), **({} if dim is None else {"dim": dim}))
    values = torch.empty(0, 3)
    try:
        expected = function(values)
    except (RuntimeError, IndexError, TypeError) as error:
        with pytest.raises(type(error)):
            function(values.to(DEVICE))
    else:
        assert_same(function(values.to(DEVICE)), expected)


@needs(torch.float32)
@pytest.mark.parametrize("name", ["all", "any", "amax", "sum", "var"])
def test_reductions_over_an_empty_list_of_dimensions(name: str) -> None:
    function, values = getattr(torch, name), sample(3, 4)
    result = function(values.to(DEVICE), dim=())
    assert_same(result, function(values, dim=()), **close(torch.float32))


@pytest.mark.native
@pytest.mark.parametrize("function", [torch.sum, torch.mean, torch.std, torch.norm])
@pytest.mark.parametrize("values", ["equal", "random"])
def test_many_numbers_add_up_as_precisely_as_on_the_cpu(
    function: Callable[..., torch.Tensor], values: str
) -> None:
    count = 3_000_000
    x = torch.full((count,), 0.1) if values == "equal" else torch.rand(count)
    exact = function(x.double()).item()
    # One rounding of the result, and the error of pairwise summation.
    assert abs(function(x.to(DEVICE)).item() - exact) <= 4e-7 * max(abs(exact), 0.1)
    rows = x.view(-1, 3)
    torch.testing.assert_close(
        rows.to(DEVICE).sum(0).cpu().double(), rows.double().sum(0), rtol=4e-7, atol=0
    )


@needs(torch.float64)
def test_float64_sums_are_exact_to_a_few_ulp() -> None:
    x = torch.full((1_000_001,), 0.1, dtype=torch.float64)
    x[::1000] = 1e9
    exact = math.fsum(x.tolist())
    for lies in (x, x.view(-1, 1)):
        assert abs(lies.to(DEVICE).sum(0).item() - exact) <= 4e-15 * exact
    assert torch.tensor([1e308, 1e308], dtype=torch.float64, device=DEVICE).sum().isinf()


@pytest.mark.parametrize("function", [torch.std, torch.var])
@needs(torch.float64)
def test_std_and_var_of_huge_numbers(function: Callable[..., torch.Tensor]) -> None:
    for numbers in ([1e160, -1e160, 1.0], [1e160, 2e160], [float("inf"), 1.0], [1e160, 1e160]):
        x = torch.tensor(numbers, dtype=torch.float64)
        for lies in (x, x.view(-1, 1)):
            assert_same(function(lies.to(DEVICE), dim=0), function(lies, dim=0))


@pytest.mark.parametrize("number", [0.1, 1234.567, -7.7])
@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
def test_std_and_var_of_equal_numbers_are_zero(dtype: torch.dtype, number: float) -> None:
    x = torch.full((3000, 3), number, dtype=dtype, device=DEVICE)
    assert x.var(0).count_nonzero() == 0
    assert x.T.contiguous().std(1).count_nonzero() == 0


READERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": torch.sum,
    "sum, dtype": lambda x: x.sum(dtype=torch.float32),
    "sum over rows": lambda x: x.view(1000, -1).sum(0),
    "mean, dtype": lambda x: x.mean(dtype=torch.float32),
    "prod": torch.prod,
    "all": torch.all,
    "any": torch.any,
    "count_nonzero": torch.count_nonzero,
    "vector_norm, dtype": lambda x: torch.linalg.vector_norm(x.float(), dtype=torch.float32),
    "cumsum": lambda x: x.cumsum(0),
}


@pytest.mark.native
@pytest.mark.parametrize("name", READERS)
@needs(torch.uint8)
def test_reductions_convert_while_they_read(name: str) -> None:
    values = torch.randint(0, 256, (2_000_000,), dtype=torch.uint8)
    x = values.to(DEVICE)
    torch.accelerator.synchronize()
    backend.reset_peak_memory_stats()
    before = backend.memory_allocated()
    result = READERS[name](x)
    peak = backend.max_memory_allocated() - before
    assert_same(result, READERS[name](values), rtol=1e-3 if "norm" in name else 1e-5, atol=0)
    # x.float() belongs to the caller; there is no other copy of the input.
    given = 4 * x.numel() if "norm" in name else 0
    # Kernels of another device may convert in scratch memory.
    scratch = 0 if is_simulator() else 4 * x.numel()
    assert peak <= given + scratch + result.nbytes + x.numel() // 2


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=str)
@needs(torch.float32)
def test_logsumexp_of_integers_with_64_dimensions(dtype: torch.dtype) -> None:
    values = torch.tensor([[3, 0, 1], [0, 0, 2]]).to(dtype)
    many = values.view(*[1] * 62, 2, 3)
    actual = many.to(DEVICE).logsumexp(-1)
    assert_same(actual.view(2), values.float().logsumexp(-1), **close(torch.float32))


@pytest.mark.parametrize("function", [torch.std, torch.var, torch.std_mean, torch.var_mean])
@pytest.mark.parametrize("shape", [(1,), (0,), (0, 3), (2, 1), (2, 0)], ids=str)
def test_a_variance_without_degrees_of_freedom_warns(
    shape: tuple[int, ...], function: Callable[..., object]
) -> None:
    for device in ("cpu", DEVICE):
        values = torch.ones(shape, device=device)
        with pytest.warns(UserWarning, match=rf"^{function.__name__}\(\): degrees of freedom"):
            function(values, dim=-1)


@pytest.mark.parametrize("order", [1, 2, 3, float("inf")])
@needs(torch.complex64)
def test_norm_of_a_number_with_an_infinite_part_is_infinite(order: float) -> None:
    values = torch.complex(torch.tensor([float("inf"), 1.0]), torch.tensor([float("nan"), 2.0]))
    assert_same(values.to(DEVICE).norm(p=order), values.norm(p=order))
