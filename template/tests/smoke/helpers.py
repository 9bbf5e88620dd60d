"""Helpers of the smoke tests: layouts, a comparison with the CPU, another process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import torch
from backend import ENV_PREFIX
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
