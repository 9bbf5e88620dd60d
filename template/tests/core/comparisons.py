"""Comparison of results and tolerances, and tensors with different strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from support import assert_same, moved, natively, sample


def layouts(*shape: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Return tensors of one shape with different strides."""
    values = sample(*shape, dtype=dtype)
    reverse = sample(*reversed(shape), dtype=dtype).permute(*reversed(range(len(shape))))
    gaps = sample(*shape[:-1], 2 * shape[-1], dtype=dtype)[..., ::2]
    return [values, reverse, gaps]


def close(dtype: torch.dtype) -> dict[str, float]:
    """Return tolerances for the rounding differences between the device and the CPU."""
    tolerance = 0.02 if dtype in (torch.float16, torch.bfloat16) else 2e-5
    return {"rtol": tolerance, "atol": tolerance}


def compare(function: Callable[..., Any], *arguments: Any, **tolerances: Any) -> None:
    """Compare the result of ``function`` on the device, without fallbacks, with that on the CPU.
    Tensors among the arguments, also in lists, are copied to the device.
    """
    expected = function(*arguments)
    with natively():
        actual = function(*[moved(argument) for argument in arguments])
    if isinstance(expected, torch.Tensor):
        actual, expected = (actual,), (expected,)
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        assert_same(mine, theirs, **tolerances)
