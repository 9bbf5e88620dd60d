"""shared/contiguous.h: for kernels that take contiguous arrays only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module", params=["", "address,undefined"], ids=["plain", "asan"])
def program(request: pytest.FixtureRequest, build: Callable[..., Path]) -> Path:
    """The checks, once without and once with AddressSanitizer."""
    return build("contiguous", request.param)


@pytest.mark.parametrize("check", ["copies", "orders", "declining"])
def test_what_needs_a_copy_has_one_and_nothing_else_does(
    program: Path, passes: Callable[[Path, str], None], check: str
) -> None:
    passes(program, check)
