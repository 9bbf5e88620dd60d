"""Fixtures for devices that draw random numbers themselves."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import is_simulator


def draws_itself() -> bool:
    """Return whether the device library has the `random` family."""
    backend.reset_fallback_stats()
    torch.empty(1, dtype=torch.float32, device=DEVICE).uniform_()
    return "aten::uniform_" not in backend.fallback_stats()


@pytest.fixture
def native_random() -> None:
    """Skip a test of guarantees that the CPU does not give, if random operators fall back.

    The bundled simulator has the family, so that a skip on the simulator would hide a defect.
    """
    if not draws_itself():
        assert not is_simulator()
        pytest.skip("the device library has no `random` family: the CPU draws in its stead")
