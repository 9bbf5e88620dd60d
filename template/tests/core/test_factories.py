"""Making tensors on the device, and the dtypes that they may have."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import (
    FLOATING,
    NEVER_OFFERED,
    assert_same,
    close,
    needs,
    sample,
    supported,
    supported_dtypes,
    unsupported_dtype,
)


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_filled_tensors(dtype: torch.dtype) -> None:
    for make in (torch.zeros, torch.ones, lambda *s, **k: torch.full(s, 1, **k)):
        assert_same(make(2, 3, dtype=dtype, device=DEVICE), make(2, 3, dtype=dtype))
    like = sample(2, 3, dtype=dtype).T
    for make_like in (torch.zeros_like, torch.ones_like):
        made = make_like(like, device=DEVICE)
        assert made.stride() == like.stride()
        assert_same(made, make_like(like))
    assert torch.empty_like(like, device=DEVICE).stride() == like.stride()


@needs(torch.float64)
def test_the_last_number_of_linspace_is_the_end() -> None:
    # 49 * (1 / 49) is less than 1.
    assert torch.linspace(0, 1, 50, dtype=torch.float64, device=DEVICE)[-1].item() == 1


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_tensor_of_python_values(dtype: torch.dtype) -> None:
    values = [[1, 0], [0, 1]]
    assert_same(torch.tensor(values, dtype=dtype, device=DEVICE), torch.tensor(values, dtype=dtype))
    assert_same(
        torch.as_tensor(values, dtype=dtype, device=DEVICE), torch.tensor(values, dtype=dtype)
    )


@needs(torch.float32)
@pytest.mark.parametrize("value", [0, 3, -2.5, True, float("inf")])
def test_fill_writes_every_layout(value: float) -> None:
    on_cpu, on_device = sample(4, 6), sample(4, 6).to(DEVICE)
    for tensor in (on_cpu, on_device):
        tensor[1:3, ::2].fill_(value)
        tensor.T[5].fill_(torch.tensor(value))
    assert_same(on_device, on_cpu)
    assert on_device.zero_().cpu().eq(0).all()


@needs(torch.float32)
def test_empty_strided_and_memory_formats() -> None:
    assert torch.empty_strided((2, 3), (1, 2), device=DEVICE).stride() == (1, 2)
    nhwc = torch.empty(2, 3, 4, 5, device=DEVICE, memory_format=torch.channels_last)
    assert nhwc.is_contiguous(memory_format=torch.channels_last)
    assert torch.empty(0, 3, device=DEVICE).numel() == 0


@needs(torch.float32)
def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(RuntimeError, match="negative"):
        torch.empty(-1, device=DEVICE)
    with pytest.raises(RuntimeError):
        torch.empty(2**62, 8, device=DEVICE)


@needs(torch.float32)
def test_uninitialised_memory_is_filled_when_algorithms_must_be_deterministic() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(5, device=DEVICE).isnan().all().item()
        assert torch.empty_strided((2, 2), (2, 1), device=DEVICE).isnan().all().item()
        assert torch.ones(2, device=DEVICE).resize_(4)[2:].isnan().all().item()
    finally:
        torch.use_deterministic_algorithms(False)


def test_dtype_that_was_left_out_is_refused_wherever_a_tensor_would_get_it() -> None:
    dtype = unsupported_dtype()
    kept = next(dtype for dtype in supported() if dtype is not torch.bool)
    on_cpu = torch.ones(2).to(dtype)
    on_device = torch.ones(2, dtype=kept, device=DEVICE)
    uses: list[Callable[[], object]] = [
        lambda: torch.empty(2, dtype=dtype, device=DEVICE),
        lambda: torch.zeros(2, dtype=dtype, device=DEVICE),
        lambda: torch.empty_strided((2,), (1,), dtype=dtype, device=DEVICE),
        lambda: torch.empty_like(on_device, dtype=dtype),
        lambda: torch.tensor([1.0], dtype=dtype, device=DEVICE),
        lambda: on_device.to(dtype),
        lambda: on_cpu.to(DEVICE),
        lambda: getattr(on_cpu, DEVICE)(),
        lambda: on_device.new_zeros(2, dtype=dtype),
    ]
    name = str(dtype)
    for use in uses:
        with pytest.raises(TypeError, match=f"{DEVICE} does not support {name}"):
            use()


@needs(torch.float32)
def test_message_of_a_refused_dtype_lists_those_that_work() -> None:
    with pytest.raises(TypeError) as error:
        torch.empty(2, dtype=NEVER_OFFERED, device=DEVICE)
    assert all(str(dtype) in str(error.value) for dtype in supported())


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
@pytest.mark.parametrize("name", ["kaiser", "hann", "hamming", "bartlett", "blackman"])
def test_windows(name: str, dtype: torch.dtype) -> None:
    window = getattr(torch, f"{name}_window")
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    for length, periodic in ((0, True), (1, True), (2, False), (9, True), (10, False)):
        expected = window(length, periodic=periodic, dtype=wide).to(dtype)
        result = window(length, periodic=periodic, dtype=dtype, device=DEVICE)
        assert_same(result, expected, **close(dtype))


def test_results_of_operators_in_an_unsupported_dtype_are_named() -> None:
    """Python drops the text of a TypeError that an operator such as + raises."""
    wanted = unsupported_dtype()
    named = rf"{DEVICE} does not support {wanted}".replace(".", r"\.")
    x = torch.ones(3, device=DEVICE)
    number = torch.ones(3, dtype=wanted) if wanted is not NEVER_OFFERED else None
    with pytest.raises(TypeError, match=named):
        torch.ones(2, dtype=wanted, device=DEVICE)
    with pytest.raises(TypeError, match=named):
        x.to(wanted)
    if number is None:
        return
    with pytest.raises(TypeError, match=named):
        number.to(DEVICE)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "//", "%", "==", "@"])
def test_operators_of_an_unsupported_dtype_say_so(symbol: str) -> None:
    pairs = [(torch.float16, torch.complex32), (torch.float64, torch.complex128)]
    missing = [(a, b) for a, b in pairs if a in supported() and b not in supported()]
    for source, result in missing:
        x = torch.ones(3, dtype=source, device=DEVICE)
        for expression in (f"x {symbol} (1 + 2j)", f"(1 + 2j) {symbol} x"):
            try:
                eval(expression, {"x": x})
            except (NotImplementedError, RuntimeError) as error:
                text = str(error)
                assert f"does not support {result}" in text or "not implemented for" in text
            except TypeError as error:
                assert symbol == "@", error


@pytest.mark.parametrize(
    "dtype", [torch.complex128, torch.complex32, torch.uint16, torch.float8_e5m2]
)
def test_what_is_advised_for_a_missing_dtype_keeps_its_kind(dtype: torch.dtype) -> None:
    """A complex number without its imaginary part would be another number."""
    if dtype in supported_dtypes():
        pytest.skip(f"generated with {dtype}")
    with pytest.raises(TypeError, match="does not support") as error:
        torch.empty(2, dtype=dtype, device=DEVICE)
    advised = re.search(r"\.to\(torch\.(\w+)\)", str(error.value))
    if advised is None:
        assert "compute on the CPU" in str(error.value)
        return
    other = getattr(torch, advised[1])
    assert other in supported_dtypes()
    assert other.is_complex == dtype.is_complex
    assert other.is_floating_point == dtype.is_floating_point
