"""Norms, variances, extremes with their places, and scans against the CPU, without a run on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import (
    COMPLEX,
    FLOATING,
    INTEGERS,
    assert_same,
    close,
    needs,
    sample,
    supported,
)

pytestmark = pytest.mark.usefixtures("everything_is_native")

Function = Callable[[torch.Tensor], Any]

STATISTICS: dict[str, Function] = {
    "var": lambda x: x.var(),
    "var_dim": lambda x: x.var(1, correction=0, keepdim=True),
    "std": lambda x: x.std((0, 1), correction=2),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "std_mean": lambda x: torch.std_mean(x, (0, 1), keepdim=True),
    "norm": lambda x: x.norm(),
    "norm_dim": lambda x: x.norm(3, 1),
    "vector_norm_0": lambda x: torch.linalg.vector_norm(x, 0),
    "vector_norm_1": lambda x: torch.linalg.vector_norm(x, 1, dim=0, keepdim=True),
    "vector_norm_2": lambda x: torch.linalg.vector_norm(x, 2, dim=(0, 1)),
    "vector_norm_inf": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1),
    "vector_norm_-inf": lambda x: torch.linalg.vector_norm(x, -float("inf"), dim=1),
    "vector_norm_half": lambda x: torch.linalg.vector_norm(x, 0.5, dim=1),
    "dist": lambda x: torch.dist(x, 2 * x),
}
REAL_STATISTICS: dict[str, Function] = {
    "logsumexp": lambda x: x.logsumexp(1),
    "logsumexp_all": lambda x: x.logsumexp((0, 1), keepdim=True),
    "nansum": lambda x: torch.nansum(x / (x.abs() > 1), 1),
}
EXTREMES: dict[str, Function] = {
    "argmax": lambda x: x.argmax(),
    "argmax_dim": lambda x: x.argmax(1, keepdim=True),
    "argmin": lambda x: x.argmin(0),
    "argmin_all": lambda x: x.argmin(keepdim=True),
    "max": lambda x: x.max(1),
    "max_keepdim": lambda x: x.max(0, keepdim=True),
    "min": lambda x: x.min(-1),
    "aminmax": lambda x: torch.aminmax(x, dim=1),
    "aminmax_all": lambda x: torch.aminmax(x),
    "count_nonzero": lambda x: torch.count_nonzero(x, 1),
    "count_all": lambda x: torch.count_nonzero(x),
}
SCANS: dict[str, Function] = {
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_type": lambda x: x.cumsum(0, dtype=torch.float32),
    "cumprod": lambda x: (x / 3).cumprod(-1),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
}
LAYOUTS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x,
    lambda x: x.T,
    lambda x: x[1:, ::2],
    lambda x: x[:1].expand(6, -1),
    lambda x: x[:, :1],
]


def results(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def compare(function: Function, values: torch.Tensor, **tolerances: float) -> None:
    """Run on both devices."""
    expected = results(function(values))
    actual = results(function(values.to(DEVICE)))
    for mine, theirs in zip(actual, expected, strict=True):
        assert_same(mine, theirs, **tolerances)


@pytest.mark.parametrize("dtype", supported(FLOATING, COMPLEX), ids=str)
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str, dtype: torch.dtype) -> None:
    for layout in LAYOUTS:
        compare(STATISTICS[name], layout(sample(6, 7, dtype=dtype)), **close(dtype))


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize("name", REAL_STATISTICS)
def test_statistics_of_real_numbers(name: str, dtype: torch.dtype) -> None:
    for layout in LAYOUTS:
        compare(REAL_STATISTICS[name], layout(sample(6, 7, dtype=dtype)), **close(dtype))


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS), ids=str)
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_and_their_places(name: str, dtype: torch.dtype) -> None:
    for layout in LAYOUTS:
        compare(EXTREMES[name], layout(sample(6, 7, dtype=dtype)))


@pytest.mark.parametrize("dtype", supported(FLOATING, INTEGERS), ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str, dtype: torch.dtype) -> None:
    for layout in LAYOUTS:
        compare(SCANS[name], layout(sample(6, 7, dtype=dtype)), **close(dtype))


@needs(torch.float32)
@pytest.mark.parametrize("table", [STATISTICS, REAL_STATISTICS, EXTREMES, SCANS], ids=len)
def test_of_a_scalar_and_of_nothing(table: dict[str, Function]) -> None:
    for values in (torch.tensor(2.0), torch.zeros(0, 3)):
        for name, function in table.items():
            try:
                expected = results(function(values))
            except (IndexError, RuntimeError):
                with pytest.raises((IndexError, RuntimeError)):
                    function(values.to(DEVICE))
                continue
            actual = results(function(values.to(DEVICE)))
            for mine, theirs in zip(actual, expected, strict=True):
                assert_same(mine, theirs, msg=name)
    backend.reset_fallback_stats()


@needs(torch.float32)
def test_nan_is_the_extreme_and_the_first_of_several_is_found() -> None:
    values = torch.tensor([[1.0, 3.0, 3.0, 2.0], [1.0, float("nan"), 5.0, float("nan")]])
    for function in (lambda x: x.max(1), lambda x: x.argmax(1), lambda x: x.min(1)):
        compare(function, values)
    for scan in (lambda x: x.cummax(1), lambda x: x.cummin(1), lambda x: x.logcumsumexp(1)):
        compare(scan, values)


@needs(torch.float32, torch.int64)
def test_out_of_another_type_is_refused() -> None:
    values = sample(4, 5).to(DEVICE)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.argmax(values, 1, out=torch.empty(4, device=DEVICE))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=str)
@needs(torch.float32)
def test_logsumexp_of_integers_of_as_many_dimensions_as_there_can_be(dtype: torch.dtype) -> None:
    values = torch.tensor([[3, 0, 1], [0, 0, 2]]).to(dtype)
    many = values.view(*[1] * 62, 2, 3)
    actual = many.to(DEVICE).logsumexp(-1)
    assert_same(actual.view(2), values.float().logsumexp(-1), **close(torch.float32))
    backend.reset_fallback_stats()  # the family declines so many


def test_a_variance_without_degrees_of_freedom_warns() -> None:
    value = torch.ones(1, device=DEVICE)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert value.var().isnan().item()


@pytest.mark.parametrize("order", [1, 2, 3, float("inf")])
@needs(torch.complex64)
def test_norm_of_a_number_with_an_infinite_part_is_infinite(order: float) -> None:
    values = torch.complex(torch.tensor([float("inf"), 1.0]), torch.tensor([float("nan"), 2.0]))
    assert_same(values.to(DEVICE).norm(p=order), values.norm(p=order))
