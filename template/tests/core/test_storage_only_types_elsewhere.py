"""Storage-only dtypes: arithmetic, files, text and other libraries, as on the CPU."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from backend import DEVICE, backend
from core.storage_only import (
    PACKED,
    Function,
    assert_same_bits,
    attempt,
    bits,
    compare,
    every_type,
    is_pickled,
    numbers,
    patterns,
)
from support import STORAGE_ONLY, supported_dtypes
from torch.utils.dlpack import from_dlpack

UNCHOSEN = [dtype for dtype in STORAGE_ONLY if dtype not in supported_dtypes()]

# --- Arithmetic ---

ARITHMETIC: dict[str, Function] = {
    "add": lambda x: x + x,
    "number": lambda x: x * 2,
    "promotion": lambda x: x + torch.ones(4, device=x.device),
    "eq": lambda x: x == x,
    "neg": lambda x: -x,
    "sum": lambda x: x.sum(),
    "cumsum": lambda x: x.cumsum(0),
    "nonzero": lambda x: x.nonzero(),
    "max": lambda x: x.max(),
    "shift": lambda x: x << 1,
    "softmax": lambda x: x.softmax(0),
    "masked_fill": lambda x: x.masked_fill(x != x, 1),
    "item": lambda x: x[0].item(),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@every_type
def test_arithmetic_gives_the_cpus_result_or_error(dtype: torch.dtype, name: str) -> None:
    values = numbers(dtype, 4) if dtype is not PACKED else patterns(dtype, 4)
    compare(ARITHMETIC[name], values)


@pytest.mark.parametrize("dtype", UNCHOSEN, ids=str)
def test_arithmetic_that_the_cpu_does_is_counted(dtype: torch.dtype) -> None:
    if dtype is PACKED:
        pytest.skip("there is no arithmetic with packed numbers")
    x = numbers(dtype, 4).to(DEVICE)
    policy = backend.fallback_policy()
    backend.set_fallback_policy("silent")
    try:
        with backend.count_fallbacks() as fallbacks:
            assert (x == x).all().item()
    finally:
        backend.set_fallback_policy(policy)
    name = str(dtype).removeprefix("torch.")
    reasons = str([record.reasons for record in fallbacks.values()])
    assert f"without {name} kernels" in reasons or f"support {name} in kernels" in reasons, (
        fallbacks
    )


# --- Copies, files and other libraries ---


@every_type
def test_copies_and_files(dtype: torch.dtype) -> None:
    values = patterns(dtype, 3, 4)
    there = values.to(DEVICE)
    file = io.BytesIO()
    torch.save(there, file)
    for location in (None, DEVICE, "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert loaded.dtype is dtype
        assert torch.equal(bits(loaded), bits(values))
    file = io.BytesIO()
    torch.save(values.t(), file)
    file.seek(0)
    assert_same_bits(torch.load(file, map_location=DEVICE), values.t())
    for made in (copy.deepcopy(there), there.detach().clone()):
        assert_same_bits(made, values)
    if is_pickled(values):
        assert_same_bits(pickle.loads(pickle.dumps(there)), values)
    last = torch.device(DEVICE, backend.device_count() - 1)
    assert torch.equal(bits(there.to(last)), bits(values))


@every_type
def test_printed_as_the_cpu_prints(dtype: torch.dtype) -> None:
    for values in (patterns(dtype, 2, 3), numbers(dtype, 5) if dtype is not PACKED else None):
        if values is None:
            continue
        expected = attempt(repr, values)
        actual = attempt(repr, values.to(DEVICE))
        if isinstance(expected, Exception):
            assert type(actual) is type(expected)
            continue
        # The device's name may wrap a line.
        shown = "".join(actual.split()).replace(f",device='{DEVICE}:0'", "")
        assert shown == "".join(expected.split())


@every_type
def test_dlpack(dtype: torch.dtype) -> None:
    values = patterns(dtype, 3, 4)
    expected = attempt(from_dlpack, values)
    actual = attempt(from_dlpack, values.to(DEVICE))
    if isinstance(expected, Exception):
        assert type(actual) is type(expected), (actual, expected)
    else:
        assert_same_bits(actual, expected)
