"""shared/address_space.h: addresses for the buffers of an SDK that has handles."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module", params=["", "thread"], ids=["plain", "tsan"])
def program(request: pytest.FixtureRequest, build: Callable[..., Path]) -> Path:
    """The checks, once without and once with ThreadSanitizer."""
    return build("address_space", request.param)


@pytest.mark.parametrize("check", ["places", "erasing", "threads"])
def test_addresses_lead_to_their_buffers(
    program: Path, passes: Callable[[Path, str], None], check: str
) -> None:
    passes(program, check)


def test_an_address_cannot_be_followed(build: Callable[..., Path]) -> None:
    done = subprocess.run([build("address_space"), "follow"], capture_output=True)
    assert done.returncode == -signal.SIGSEGV
