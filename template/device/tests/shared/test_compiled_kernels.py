"""shared/compiled_kernels.h: the plan of a device whose kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module", params=["", "thread"], ids=["plain", "tsan"])
def program(request: pytest.FixtureRequest, build: Callable[..., Path]) -> Path:
    """The checks, once without and once with ThreadSanitizer."""
    return build("compiled_kernels", request.param)


@pytest.mark.parametrize("check", ["keys", "threads", "failing"])
def test_each_kernel_is_compiled_once_and_destroyed_once(
    program: Path, passes: Callable[[Path, str], None], check: str
) -> None:
    passes(program, check)
