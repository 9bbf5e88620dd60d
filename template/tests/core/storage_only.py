"""Tensors of storage-only dtypes, and their comparison with the CPU's.

If the CPU has no kernel, the device may compute a result or raise the CPU's exception.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import STORAGE_ONLY, moved, natively

PACKED = torch.float4_e2m1fn_x2
FLOAT8 = tuple(dtype for dtype in STORAGE_ONLY if "float8" in str(dtype))
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}


Function = Callable[[torch.Tensor], Any]


def patterns(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    """Return a CPU tensor of random bytes, viewed as ``dtype``."""
    generator = torch.Generator().manual_seed(seed)
    count = 1
    for size in shape:
        count *= size
    raw = torch.randint(0, 256, (count * dtype.itemsize,), generator=generator)
    return (
        raw.to(torch.uint8).view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)
    )


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Return a CPU tensor of finite numbers, the same for each dtype except for rounding."""
    values = torch.linspace(0.25, 9, max(1, torch.Size(shape).numel()))[: torch.Size(shape).numel()]
    return values.reshape(shape).to(dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's elements on the CPU."""
    dense = tensor.cpu().contiguous().reshape(-1)
    return dense.view(torch.uint8) if dense.numel() else torch.empty(0, dtype=torch.uint8)


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Compare results: tensors by their bits, except of NaN, other values by equality."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for mine, theirs in zip(actual, expected, strict=True):
            assert_same_bits(mine, theirs)
        return
    if not isinstance(expected, torch.Tensor):
        assert actual == expected or (actual != actual and expected != expected)
        return
    assert actual.device.type == DEVICE
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    mine = actual.cpu()
    if expected.is_floating_point() and expected.dtype is not PACKED:
        torch.testing.assert_close(
            mine.to(torch.float64), expected.to(torch.float64), rtol=0, atol=0, equal_nan=True
        )
    elif expected.is_complex():
        wide = torch.complex128
        torch.testing.assert_close(mine.to(wide), expected.to(wide), rtol=0, atol=0, equal_nan=True)
    else:
        assert torch.equal(bits(mine), bits(expected))


def attempt(function: Function, tensor: torch.Tensor) -> Any:
    try:
        return function(tensor)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return error


def is_pickled(values: torch.Tensor) -> bool:
    """Return whether PyTorch can pickle the dtype, for which it needs a typed storage."""
    try:
        pickle.loads(pickle.dumps(values))
    except AttributeError:
        return False
    return True


def compare(function: Function, tensor: torch.Tensor, native: bool = False) -> None:
    """Compare the result or the exception with the CPU's. ``native``: no operator falls back."""
    expected = attempt(function, tensor)
    here = moved(tensor)
    if native and not isinstance(expected, Exception):
        with natively():
            actual = function(here)
    else:
        actual = attempt(function, here)
    if not isinstance(expected, Exception):
        assert not isinstance(actual, Exception), actual
        assert_same_bits(actual, expected)
    elif isinstance(actual, Exception):
        assert type(actual) is type(expected), (actual, expected)


def views(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {
        "contiguous": patterns(dtype, 4, 6),
        "transposed": patterns(dtype, 6, 4).t(),
        "gaps": patterns(dtype, 4, 12)[:, ::2],
        "offset": patterns(dtype, 6, 6)[2:],
        "expanded": patterns(dtype, 4, 1).expand(4, 6),
        "no elements": patterns(dtype, 0, 6),
        "no dimensions": patterns(dtype),
        "three": patterns(dtype, 2, 3, 4).permute(2, 0, 1),
    }


every_type = pytest.mark.parametrize("dtype", STORAGE_ONLY, ids=str)
every_view = pytest.mark.parametrize("layout", list(views(torch.uint8)))
