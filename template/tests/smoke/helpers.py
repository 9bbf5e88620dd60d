"""Helpers of the smoke tests: values, a comparison with the CPU, another process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend

needs_two_devices = pytest.mark.skipif(backend.device_count() < 2, reason="there is one device")


def sample(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Return a CPU tensor of the same values each time, between -5 and 5."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 10 - 5).to(dtype)


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


def to_device(value: Any) -> Any:
    """Return a value on the device. A tensor keeps its strides and its offset."""
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        whole = torch.empty(0, dtype=value.dtype).set_(storage).to(DEVICE)
        return whole.as_strided(value.size(), value.stride(), value.storage_offset())
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item) for item in value)
    return value


def assert_same(actual: torch.Tensor, expected: torch.Tensor, **tolerances: Any) -> None:
    """Compare a tensor of the device with one of the CPU: device, dtype, shape and values."""
    assert actual.device.type == DEVICE
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True, **tolerances)


def compare(function: Callable[..., Any], *arguments: Any, **tolerances: Any) -> None:
    """Compare the result of a function for arguments on the device with that on the CPU."""
    there = to_device(list(arguments))  # before a function that works in place changes them
    expected, actual = function(*arguments), function(*there)
    if isinstance(expected, torch.Tensor):
        actual, expected = (actual,), (expected,)
    for mine, theirs in zip(actual, expected, strict=True):
        assert_same(mine, theirs, **tolerances)


def run_python(code: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in another process, which must end with an exit status."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={f"{ENV_PREFIX}_FALLBACK": "silent", **os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done
