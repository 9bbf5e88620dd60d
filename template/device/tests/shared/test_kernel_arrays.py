"""shared/kernel_arrays.h, elements.h and parts.h: the arguments of kernels, and supported parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module", params=["", "address,undefined"], ids=["plain", "asan"])
def program(request: pytest.FixtureRequest, build: Callable[..., Path]) -> Path:
    """The checks, once without and once with AddressSanitizer."""
    return build("kernel_arrays", request.param)


@pytest.mark.parametrize("check", ["arrays", "types", "parts"])
def test_kernels_get_arrays_of_their_types_and_decline_what_they_lack(
    program: Path, passes: Callable[[Path, str], None], check: str
) -> None:
    passes(program, check)
