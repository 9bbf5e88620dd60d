"""Every test starts from device 0, its default stream and a known seed."""
# ruff: noqa: E402  The path is repaired before anything imports torch.

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

# `python -m pytest` puts the project's folder first. The sources of the package there would hide
# the installed one, which has the compiled half.
PROJECT = Path(__file__).resolve().parents[1]
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != PROJECT]

import pytest
import torch
from backend import backend


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Leave no device, stream or seed behind for the next test."""
    torch.manual_seed(0)
    yield
    for index in reversed(range(backend.device_count())):
        backend.set_stream(backend.default_stream(index))
    backend.set_device(0)
