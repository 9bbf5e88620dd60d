"""Sequences, windows, uninitialised memory, and the dtypes that a tensor may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from core.comparisons import close
from support import ABSENT, FLOATING, assert_same, needs, supported


@needs(torch.float64)
@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_sequences_in_outputs_of_several_dimensions(name: str) -> None:
    function = getattr(torch, name)
    for size, turned in (((3, 2, 2), False), ((4, 3), True), ((1, 12, 1), False)):
        outs = [torch.empty(size, device=device) for device in ("cpu", DEVICE)]
        outs = [out.t() if turned else out for out in outs]
        for out in outs:
            function(-1, 2.5, 12, out=out)
        torch.testing.assert_close(outs[1].cpu(), outs[0])


def test_the_last_number_of_linspace_is_the_end() -> None:
    # 49 * (1 / 49) is less than 1.
    assert torch.linspace(0, 1, 50, dtype=torch.float64, device=DEVICE)[-1].item() == 1


@needs(torch.float32)
def test_uninitialised_memory_is_filled_when_algorithms_must_be_deterministic() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(5, device=DEVICE).isnan().all().item()
        assert torch.empty_strided((2, 2), (2, 1), device=DEVICE).isnan().all().item()
        assert torch.ones(2, device=DEVICE).resize_(4)[2:].isnan().all().item()
    finally:
        torch.use_deterministic_algorithms(False)


def test_an_absent_dtype_is_refused_wherever_a_tensor_would_get_it() -> None:
    dtype = ABSENT
    kept = next(dtype for dtype in supported() if dtype is not torch.bool)
    on_cpu = torch.ones(2, dtype=torch.uint8).view(dtype)
    on_device = torch.ones(2, dtype=kept, device=DEVICE)
    uses: list[Callable[[], object]] = [
        lambda: torch.empty(2, dtype=dtype, device=DEVICE),
        lambda: torch.zeros(2, dtype=dtype, device=DEVICE),
        lambda: torch.empty_strided((2,), (1,), dtype=dtype, device=DEVICE),
        lambda: torch.empty_like(on_device, dtype=dtype),
        lambda: on_device.to(dtype),
        lambda: on_cpu.to(DEVICE),
        lambda: getattr(on_cpu, DEVICE)(),
        lambda: on_device.new_zeros(2, dtype=dtype),
    ]
    for use in uses:
        with pytest.raises(TypeError, match=f"{DEVICE} does not support {dtype}"):
            use()


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize("name", ["kaiser", "hann", "hamming", "bartlett", "blackman"])
def test_windows(name: str, dtype: torch.dtype) -> None:
    window = getattr(torch, f"{name}_window")
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    for length, periodic in ((0, True), (1, True), (2, False), (9, True), (10, False)):
        expected = window(length, periodic=periodic, dtype=wide).to(dtype)
        result = window(length, periodic=periodic, dtype=dtype, device=DEVICE)
        assert_same(result, expected, **close(dtype))
    # In bfloat16 the positions are rounded, some beyond the window's end.
    assert not window(300, periodic=False, dtype=dtype, device=DEVICE).isnan().any()
