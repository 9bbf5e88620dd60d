"""The dtypes of autocast, and the functions that get and set its state."""

from __future__ import annotations

import threading

import pytest
import torch
from backend import DEVICE, backend
from support import needs, run_python, supported

LOWER = backend.get_amp_supported_dtype()

pytestmark = [
    needs(torch.float32),
    pytest.mark.skipif(not LOWER, reason="generated without a 16-bit floating-point dtype"),
]


def test_supported_dtypes_are_the_16_bit_dtypes_of_the_backend() -> None:
    assert supported(torch.float16, torch.bfloat16) == LOWER


def test_the_default_dtype_is_supported() -> None:
    expected = torch.float16 if torch.float16 in LOWER else torch.bfloat16
    code = f"import torch; print(torch.get_autocast_dtype({DEVICE!r}))"
    assert run_python(code).stdout.strip() == str(expected)


def test_the_module_agrees_with_torch() -> None:
    def agree() -> None:
        assert backend.is_autocast_enabled() == torch.is_autocast_enabled(DEVICE)
        assert backend.get_autocast_dtype() is torch.get_autocast_dtype(DEVICE)

    before = backend.get_autocast_dtype()
    agree()
    assert not backend.is_autocast_enabled()
    with torch.autocast(DEVICE, dtype=LOWER[-1]):
        agree()
        assert backend.is_autocast_enabled()
        assert backend.get_autocast_dtype() is LOWER[-1]
        with torch.autocast(DEVICE, enabled=False):
            agree()
            assert not backend.is_autocast_enabled()
        agree()
        assert backend.is_autocast_enabled()
        with torch.autocast(DEVICE, dtype=LOWER[0]):
            agree()
            assert backend.get_autocast_dtype() is LOWER[0]
        assert backend.get_autocast_dtype() is LOWER[-1]
    agree()
    assert not backend.is_autocast_enabled()
    assert backend.get_autocast_dtype() is before


def test_setting_enabled_through_the_module_takes_effect() -> None:
    matrix = torch.eye(2, device=DEVICE)
    backend.set_autocast_enabled(True)
    try:
        assert torch.is_autocast_enabled(DEVICE)
        assert torch.mm(matrix, matrix).dtype is torch.get_autocast_dtype(DEVICE)
    finally:
        backend.set_autocast_enabled(False)
    assert not torch.is_autocast_enabled(DEVICE)
    assert torch.mm(matrix, matrix).dtype is torch.float32


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_setting_the_dtype_through_the_module_takes_effect(dtype: torch.dtype) -> None:
    before = backend.get_autocast_dtype()
    matrix = torch.eye(2, device=DEVICE)
    backend.set_autocast_dtype(dtype)
    try:
        assert torch.get_autocast_dtype(DEVICE) is dtype
        with torch.autocast(DEVICE):
            assert torch.mm(matrix, matrix).dtype is dtype
    finally:
        backend.set_autocast_dtype(before)


def test_the_state_belongs_to_the_thread() -> None:
    seen = []
    with torch.autocast(DEVICE, dtype=LOWER[0]):
        thread = threading.Thread(target=lambda: seen.append(backend.is_autocast_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]
