"""The operators of vLLM's library that its Python code calls on every device."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE

LIMIT = torch.finfo(torch.float8_e4m3fn).max
ROWS, COLUMNS = 6, 8


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    importlib.import_module(f"{PACKAGE}.vllm.operators").register()


def numbers(rows: int = ROWS) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix, and a result for it."""
    result = torch.empty(rows, COLUMNS, dtype=torch.float8_e4m3fn, device=DEVICE)
    return torch.randn(ROWS, COLUMNS) * 1000, result


def wanted(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x / scale).clamp(-LIMIT, LIMIT).to(torch.float8_e4m3fn).float()


@pytest.mark.parametrize(
    ("shape", "group", "expanded"),
    [
        ((), None, (ROWS, COLUMNS)),
        ((1,), (-1, -1), (ROWS, COLUMNS)),
        ((ROWS,), (1, -1), (1, COLUMNS)),
        ((COLUMNS,), (-1, 1), (ROWS, 1)),
        ((3, 2), (2, 4), (2, 4)),
        ((3, 2), None, (2, 4)),
    ],
)
def test_quantization_with_given_scales(
    shape: tuple[int, ...], group: tuple[int, int] | None, expanded: tuple[int, int]
) -> None:
    x, result = numbers()
    scale = torch.rand(shape) + 0.5
    torch.ops._C.static_scaled_fp8_quant(result, x.to(DEVICE), scale.to(DEVICE), group)
    high, wide = expanded
    whole = scale.reshape(ROWS // high, COLUMNS // wide)
    whole = whole.repeat_interleave(high, 0).repeat_interleave(wide, 1)
    assert torch.equal(result.float().cpu(), wanted(x, whole))


def test_quantization_with_one_computed_scale() -> None:
    x, result = numbers()
    scale = torch.empty(1, device=DEVICE)
    torch.ops._C.dynamic_scaled_fp8_quant(result, x.to(DEVICE), scale)
    torch.testing.assert_close(scale.cpu(), x.abs().max().view(1) / LIMIT)
    assert torch.equal(result.float().cpu(), wanted(x, scale.cpu()))


@pytest.mark.parametrize("bound", [None, 700.0])
def test_quantization_with_a_computed_scale_per_row_ignores_padding(bound: float | None) -> None:
    x, result = numbers(ROWS + 3)
    scale = torch.empty(ROWS + 3, 1, device=DEVICE)
    limit: Any = None if bound is None else torch.tensor(bound, device=DEVICE)
    torch.ops._C.dynamic_per_token_scaled_fp8_quant(result, x.to(DEVICE), scale, limit)
    most = x.abs().amax(1, keepdim=True).clamp(max=bound if bound is not None else float("inf"))
    torch.testing.assert_close(scale[:ROWS].cpu(), most / LIMIT)
    assert torch.equal(result[:ROWS].float().cpu(), wanted(x, scale[:ROWS].cpu()))
