"""``expect_device`` and autocast regions."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend

LOWER = backend.get_amp_supported_dtype()

pytestmark = pytest.mark.skipif(not LOWER, reason="generated without a 16-bit floating-point dtype")


def test_expect_device_allows_an_inner_region_of_another_device() -> None:
    """``expect_device`` raises if autocast is enabled for another device and not for this one."""
    model = torch.nn.Linear(2, 2).to(DEVICE)
    with backend.expect_device(), torch.autocast(DEVICE, dtype=LOWER[-1]), torch.autocast("cpu"):
        assert model(torch.ones(1, 2, device=DEVICE)).dtype is LOWER[-1]
