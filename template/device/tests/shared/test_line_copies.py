"""shared/line_copies.h and host_buffers.h: copies for an SDK that copies whole lines of buffers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def program(build: Callable[..., Path]) -> Path:
    """The checks, under AddressSanitizer."""
    return build("line_copies", "address")


@pytest.mark.parametrize("check", ["found", "copied", "untouched", "ordered", "addressed"])
def test_any_bytes_are_copied_and_no_others(
    program: Path, passes: Callable[[Path, str], None], check: str
) -> None:
    passes(program, check)
