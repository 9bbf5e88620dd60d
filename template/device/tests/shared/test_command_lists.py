"""shared/command_lists.h: streams for an SDK that takes work as lists of commands."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module", params=["", "thread"], ids=["plain", "tsan"])
def program(request: pytest.FixtureRequest, build: Callable[..., Path]) -> Path:
    """The checks, once as they are and once under ThreadSanitizer."""
    return build("command_lists", request.param)


@pytest.mark.parametrize("check", ["submitting", "waiting", "threads"])
def test_lists_are_submitted_in_time_and_in_order(program: Path, check: str) -> None:
    done = subprocess.run([program, check], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
