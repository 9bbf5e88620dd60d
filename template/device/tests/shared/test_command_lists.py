"""shared/command_lists.h: streams for an SDK that takes work as lists of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module", params=["", "thread"], ids=["plain", "tsan"])
def program(request: pytest.FixtureRequest, build: Callable[..., Path]) -> Path:
    """The checks, once without and once with ThreadSanitizer."""
    return build("command_lists", request.param)


@pytest.mark.parametrize(
    "check",
    ["submitting", "room", "interrupted", "waiting", "events", "host_functions", "threads"],
)
def test_lists_are_submitted_in_time_and_in_order(
    program: Path, passes: Callable[[Path, str], None], check: str
) -> None:
    passes(program, check)
