"""Storage-only dtypes: tensors are created, moved and converted as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from core.storage_only import (
    BITS,
    PACKED,
    Function,
    assert_same_bits,
    attempt,
    bits,
    compare,
    every_type,
    every_view,
    numbers,
    patterns,
    views,
)
from support import ABSENT, is_simulator, natively, run_python, supported_dtypes

# --- Support of a dtype ---


@every_type
def test_each_type_is_supported_or_storage_only(dtype: torch.dtype) -> None:
    for index in range(backend.device_count()):
        computed = set(supported_dtypes())
        if not is_simulator(index):
            # Another device may compute with fewer.
            computed &= torch.accelerator.get_device_capability(index)["supported_dtypes"]
        expected = "supported" if dtype in computed else "storage-only"
        assert backend.dtype_support(dtype, index) == expected


def test_a_type_without_a_device_type_is_unsupported() -> None:
    for dtype in (ABSENT, torch.quint8):
        assert backend.dtype_support(dtype) == "unsupported"
    with pytest.raises(TypeError, match=f"{DEVICE} does not support {ABSENT}"):
        torch.empty(2, dtype=ABSENT, device=DEVICE)


def test_a_device_can_support_fewer_dtypes_than_the_project() -> None:
    if not is_simulator():
        pytest.skip("needs a setting that only the simulator has")
    code = f"""
        import torch
        backend = torch.{DEVICE}
        assert backend.dtype_support(torch.float32) == "supported"
        assert backend.dtype_support(torch.int64) == "supported"
        assert backend.dtype_support(torch.int32) == "storage-only"
        known = torch.accelerator.get_device_capability()["supported_dtypes"]
        assert known == {{torch.bool, torch.int64, torch.float32}}, known
        x = torch.arange(4, dtype=torch.int32).to("{DEVICE}")
        backend.reset_fallback_stats()
        assert torch.stack([x, x])[:, 1:].flip(1).tolist() == [[3, 2, 1]] * 2
        assert x.to(torch.float32).add(1).tolist() == [1, 2, 3, 4]
        assert torch.full((2,), -7, dtype=torch.int32, device="{DEVICE}").tolist() == [-7, -7]
        assert backend.fallback_stats() == {{}}, backend.fallback_stats()
        assert (x + 1).tolist() == [1, 2, 3, 4]
        (record,) = backend.fallback_stats().values()
        assert "this device does not support int32 in kernels" in str(record.reasons), record
    """
    environment = {
        f"{ENV_PREFIX}_SIMULATOR_DTYPES": "float32",
        f"{ENV_PREFIX}_FALLBACK": "silent",
    }
    run_python(code, environment)


# --- Making tensors ---

FACTORIES: dict[str, Callable[[torch.dtype, str], Any]] = {
    "zeros": lambda dtype, device: torch.zeros(2, 3, dtype=dtype, device=device),
    "full": lambda dtype, device: torch.full((2, 2), 5.5, dtype=dtype, device=device),
    "one element": lambda dtype, device: torch.full((1,), 3, dtype=dtype, device=device),
    "no elements": lambda dtype, device: torch.full((0,), 3, dtype=dtype, device=device),
    "too much": lambda dtype, device: torch.full((2,), 1e30, dtype=dtype, device=device),
    "negative": lambda dtype, device: torch.full((2,), -2, dtype=dtype, device=device),
    "complex": lambda dtype, device: torch.full((2,), 1 + 2j, dtype=dtype, device=device),
    "tensor": lambda dtype, device: torch.tensor([[1, 2], [3, 4]], dtype=dtype, device=device),
}


@pytest.mark.parametrize("name", FACTORIES)
@every_type
def test_factories(dtype: torch.dtype, name: str) -> None:
    make = FACTORIES[name]
    expected = attempt(lambda _: make(dtype, "cpu"), torch.empty(0))
    actual = attempt(lambda _: make(dtype, DEVICE), torch.empty(0))
    if isinstance(expected, Exception):
        assert "not implemented for" in str(expected) or isinstance(actual, Exception)
    if isinstance(expected, Exception) and isinstance(actual, Exception):
        assert type(actual) is type(expected), (actual, expected)
    elif not isinstance(expected, Exception):
        assert_same_bits(actual, expected)


# --- Moving elements ---

MOVES: dict[str, Function] = {
    "clone": lambda x: x.clone(),
    "transpose": lambda x: x.t().contiguous() if x.dim() == 2 else x.clone(),
    "stack": lambda x: torch.stack([x, x], -1),
    "cat": lambda x: torch.cat([x, x]),
    "zero_": lambda x: x.clone().zero_(),
    "roll": lambda x: x.roll(1, 0) if x.dim() else x.clone(),
    "unfold": lambda x: x.unfold(0, 2, 1).contiguous() if x.dim() and x.size(0) > 1 else x.clone(),
    "where": lambda x: torch.where(torch.ones_like(x, dtype=torch.bool), x, x),
}


@pytest.mark.parametrize("name", MOVES)
@every_view
@every_type
def test_moves_are_native_and_exact(dtype: torch.dtype, layout: str, name: str) -> None:
    compare(MOVES[name], views(dtype)[layout], native=True)


INDEXING: dict[str, Function] = {
    "index": lambda x: x[torch.tensor([2, 0, 2], device=x.device)],
    "mask": lambda x: x[torch.tensor([True, False, True, True], device=x.device)],
    "index_select": lambda x: x.index_select(1, torch.tensor([5, 0], device=x.device)),
    "gather": lambda x: x.gather(1, torch.tensor([[0, 5], [1, 1]], device=x.device)),
    "take": lambda x: x.take(torch.tensor([7, 0], device=x.device)),
    "index_put": lambda x: x.clone().index_put_((torch.tensor([1, 3], device=x.device),), x[:2]),
    "scatter": lambda x: x.clone().scatter_(
        1, torch.tensor([[0], [3]], device=x.device), x[:2, :1].clone()
    ),
    "index_copy": lambda x: x.clone().index_copy_(0, torch.tensor([2], device=x.device), x[:1]),
    "embedding": lambda x: torch.nn.functional.embedding(
        torch.tensor([[1, 3]], device=x.device), x
    ),
    "flip": lambda x: x.flip(0, 1),
    "tril": lambda x: x.tril(),
}


@pytest.mark.parametrize("name", INDEXING)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "gaps", "expanded"])
@every_type
def test_indexing(dtype: torch.dtype, layout: str, name: str) -> None:
    compare(INDEXING[name], views(dtype)[layout], native=True)


@pytest.mark.parametrize("name", ["flip", "gather", "scatter", "index_copy", "take", "tril"])
@every_type
def test_moving_elements_needs_no_cpu_kernel(dtype: torch.dtype, name: str) -> None:
    """The CPU lacks some of these for narrow types, so integers are the reference."""
    values = patterns(dtype, 4, 6)
    whole = values.view(BITS[dtype.itemsize]) if dtype.itemsize < 16 else values
    with natively():
        actual = INDEXING[name](values.to(DEVICE))
    assert torch.equal(bits(actual), bits(INDEXING[name](whole)))


# --- Conversions ---

OTHERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8)


@pytest.mark.parametrize("other", [*OTHERS, torch.bool, torch.complex64], ids=str)
@every_type
def test_conversions_from(dtype: torch.dtype, other: torch.dtype) -> None:
    whole = other in (torch.int32, torch.uint8)
    # Conversions of numbers that no integer can hold depend on the processor.
    small = dtype is not PACKED and (whole or dtype in (torch.uint32, torch.uint64))
    values = numbers(dtype, 3, 5) if small else patterns(dtype, 3, 5)
    compare(lambda x: x.to(other), values)
    compare(lambda x: x.t().to(other), values)


@pytest.mark.parametrize("other", OTHERS, ids=str)
@every_type
def test_conversions_to(dtype: torch.dtype, other: torch.dtype) -> None:
    values = numbers(other, 5, 3)
    compare(lambda x: x.to(dtype), values)
    compare(lambda x: x.t().to(dtype), values)
    compare(lambda x: torch.zeros_like(x, dtype=dtype).copy_(x), values)


@every_type
def test_views_of_another_dtype(dtype: torch.dtype) -> None:
    values = patterns(dtype, 4, 8)
    compare(lambda x: x.view(BITS[x.itemsize]), values, native=True)
    compare(lambda x: x.view(torch.uint8), values, native=True)
    if dtype.is_complex:
        compare(torch.view_as_real, values, native=True)
        compare(lambda x: torch.view_as_complex(torch.view_as_real(x)), values, native=True)
