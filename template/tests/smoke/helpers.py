"""Helpers of the smoke tests: layouts and a comparison with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from support import assert_same, moved, sample


def layouts(*shape: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Return CPU tensors of one shape, of at least two dimensions, by how they are stored."""
    rows, *rest = shape
    return {
        "contiguous": sample(*shape, dtype=dtype),
        "transposed": sample(*reversed(shape), dtype=dtype).permute(*reversed(range(len(shape)))),
        "strided": sample(rows * 2, *rest, dtype=dtype)[::2],
        "offset": sample(rows + 1, *rest, dtype=dtype)[1:],
        "expanded": sample(1, *rest, dtype=dtype).expand(shape),
    }


def compare(function: Callable[..., Any], *arguments: Any, **tolerances: Any) -> None:
    """Compare the result of a function for arguments on the device with that on the CPU."""
    there = moved(list(arguments))  # before a function that works in place changes them
    expected, actual = function(*arguments), function(*there)
    if isinstance(expected, torch.Tensor):
        actual, expected = (actual,), (expected,)
    for mine, theirs in zip(actual, expected, strict=True):
        assert_same(mine, theirs, **tolerances)
