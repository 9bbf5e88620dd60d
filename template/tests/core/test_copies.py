"""Copies of every layout, dtype and bit, within and between devices, and printing."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from backend import DEVICE, backend, bits
from support import (
    FLOATING,
    INTEGERS,
    needs,
    run_python,
    sample,
    supported,
)

LAST = torch.device(DEVICE, backend.device_count() - 1)


def base(dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return sample(4, 5, 6, dtype=dtype, low=0, high=5, seed=seed)


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_to_every_other_dtype(dtype: torch.dtype) -> None:
    values = base(dtype)
    real = values.real if dtype.is_complex else values
    for other in supported():
        source = values if other.is_complex else real
        expected = source.to(other)
        moved = source.to(DEVICE)
        for copied in (
            moved.to(other),
            source.to(DEVICE, other),
            moved.to("cpu", other),
            torch.empty_like(expected, device=DEVICE).copy_(source),
            torch.empty_like(expected).copy_(moved),
        ):
            assert copied.dtype is other
            assert bits(copied.cpu()).equal(bits(expected))


BITS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x,
    "conj": torch.conj,
    "neg": torch._neg_view,
    "conj neg": lambda x: torch._neg_view(x.conj()),
    "conj imag": lambda x: x.conj().imag,
}
SHAPES: dict[str, tuple[tuple[int, int], Callable[[torch.Tensor], torch.Tensor]]] = {
    "contiguous": ((2, 3), lambda x: x),
    "transposed": ((3, 2), lambda x: x.T),
    "stepped": ((4, 5), lambda x: x[::2, 2:]),
    "expanded": ((1, 3), lambda x: x.expand(2, 3)),
}
KINDS = supported(
    [torch.float32, torch.float16, torch.int32, torch.uint8, torch.bool, torch.complex64]
)


def bits_of(dtype: torch.dtype) -> list[str]:
    """Return the ``BITS`` of a dtype: bool and unsigned dtypes have no negative bit."""
    if dtype.is_complex:
        return list(BITS)
    signed = dtype in FLOATING or (dtype in INTEGERS and dtype is not torch.uint8)
    return ["plain", "neg"] if signed else ["plain"]


@pytest.mark.parametrize("from_dtype", KINDS, ids=str)
@pytest.mark.parametrize("to_dtype", KINDS, ids=str)
def test_every_copy_resolves_conjugate_and_negative_bits(
    to_dtype: torch.dtype, from_dtype: torch.dtype
) -> None:
    """The CPU reference copies plain values of the target's dtype, because the CPU ignores negative
    bits of float16 when it also converts.
    """
    places = [torch.device("cpu"), torch.device(DEVICE, 0), LAST]
    routes = [route for route in itertools.product(places, places) if set(route) != {places[0]}]
    for to_bits, from_bits, to_shape, from_shape in itertools.product(
        bits_of(to_dtype), bits_of(from_dtype), SHAPES, SHAPES
    ):
        if to_shape == "expanded":
            continue
        (to_size, to_layout), (from_size, from_layout) = SHAPES[to_shape], SHAPES[from_shape]
        source = sample(*from_size, dtype=from_dtype, low=0, high=5)
        values = from_layout(BITS[from_bits](source)).resolve_conj().resolve_neg()
        before = sample(*to_size, dtype=to_dtype, low=0, high=5, seed=1)
        expected = before.clone()
        target = to_layout(BITS[to_bits](expected))
        target.copy_(values.to(target.dtype))
        for to_place, from_place in routes:
            actual = before.to(to_place, copy=True)
            given = from_layout(BITS[from_bits](source.to(from_place)))
            to_layout(BITS[to_bits](actual)).copy_(given)
            assert actual.cpu().equal(expected), (to_bits, from_bits, to_shape, from_shape)


@needs(torch.complex64, torch.float32, torch.int64)
def test_assignments_through_conjugates_receive_the_right_values() -> None:
    for source in (torch.arange(3.0), torch.arange(3), torch.arange(3.0) + 1j):
        for origin in (source, source.to(DEVICE)):
            expected = base(torch.complex64)[0, 0, :3].clone()
            values = expected.to(DEVICE)
            for z, given in ((values, origin), (expected, source)):
                z.conj().copy_(given)
                z.conj().imag.copy_(given.real)
                z.conj()[1:] = given[1:]
                z.conj().imag[1:] = given.real[1:]
                z.conj().imag[0] = 7
            assert values.cpu().equal(expected)


@needs(torch.complex64)
def test_a_tensor_can_be_overwritten_with_its_own_conjugate() -> None:
    expected = base(torch.complex64)
    values = expected.to(DEVICE)
    values.copy_(values.conj())
    assert values.cpu().equal(expected.conj())


@needs(torch.complex64, torch.float32, torch.int64)
def test_a_copy_that_discards_imaginary_parts_warns() -> None:
    torch.set_warn_always(True)
    try:
        for device in ("cpu", DEVICE):
            values = base(torch.complex64).to(device)
            for dtype in (torch.float32, torch.int64):
                with pytest.warns(UserWarning, match="discards the imaginary part"):
                    values.to(dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                values.to(torch.bool)
    finally:
        torch.set_warn_always(False)


@needs(torch.float32)
def test_fill_takes_its_value_from_any_device_and_from_the_tensor_itself() -> None:
    x = torch.arange(4.0, device=DEVICE)
    assert x.fill_(x[2]).tolist() == [2] * 4
    assert torch.zeros(2).fill_(x[0]).tolist() == [2, 2]
    assert torch.zeros(2, device=LAST).fill_(x[0]).tolist() == [2, 2]


def test_zero_tensors_cannot_be_written() -> None:
    zeros = torch._efficientzerotensor((3,), device=DEVICE)
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
        zeros.copy_(torch.ones(3, device=DEVICE))


def test_a_copy_within_one_tensor_is_refused_where_the_two_overlap() -> None:
    for device in ("cpu", DEVICE):
        values = torch.zeros(3, 3, device=device)
        for source in (values[1:2], values[0], values[0, 0]):
            with pytest.raises(RuntimeError, match="refer to a single memory location"):
                values.copy_(source)
        values[1:2].copy_(values[:1])


@needs(torch.float32)
@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format])
def test_memory_format_is_preserved_or_set(format: torch.memory_format) -> None:
    values = sample(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert values.to(DEVICE).is_contiguous(memory_format=torch.channels_last)
    moved = values.to(DEVICE, memory_format=format)
    assert moved.is_contiguous(memory_format=format)
    assert moved.contiguous().cpu().equal(values)


@needs(torch.float32)
def test_large_copy_is_complete() -> None:
    values = sample(3 * 2**20)
    assert values.to(DEVICE).cpu().equal(values)


@needs(torch.float32)
def test_copying_a_tensor_onto_itself_changes_nothing() -> None:
    tensor = sample(10).to(DEVICE)
    assert tensor.copy_(tensor) is tensor
    tensor[:].copy_(tensor)
    tensor.data.copy_(tensor)
    assert tensor.cpu().equal(sample(10))
    expanded = sample(2).to(DEVICE).expand(3, 2)
    expanded[1:].copy_(expanded[:-1])
    with pytest.raises(RuntimeError, match="more than one element"):
        expanded.copy_(expanded[0].clone())


@needs(torch.float32, torch.bool)
@pytest.mark.parametrize(
    "values",
    [
        sample(2000),
        sample(40, 50),
        sample(3, 400, 2),
        sample(7, 8, 9, 10),
        sample(1, 1500).to(torch.bfloat16),
        sample(100, 30) > 0,
        torch.complex(sample(60, 60), sample(60, 60)),
        sample(60, 70).T,
    ],
    ids=lambda values: f"{tuple(values.shape)}, {values.dtype}",
)
def test_long_tensors_are_printed_as_those_of_the_cpu(values: torch.Tensor) -> None:
    here, there = ("".join(repr(x).split()) for x in (values.to(DEVICE), values))
    assert here == there[:-1] + f",device='{DEVICE}:0')" or here == there.replace(
        ",dtype=", f",device='{DEVICE}:0',dtype="
    )
    assert torch._tensor_str.PRINT_OPTS.threshold == 1000


@needs(torch.float32)
def test_threads_that_print_restore_the_threshold() -> None:
    tensors = [sample(2000).to(DEVICE), sample(100).to(DEVICE)] * 20
    expected = [repr(tensor) for tensor in tensors]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(repr, tensors)) == expected
    finally:
        sys.setswitchinterval(interval)
    assert torch._tensor_str.PRINT_OPTS.threshold == 1000


@needs(torch.float32)
def test_printing_copies_only_printed_elements() -> None:
    peak = run_python(
        f"""
        import resource, torch

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10  # MiB

        x = torch.zeros(1 << 13, 1 << 13, device="{DEVICE}")  # 256 MiB
        repr(torch.zeros(40, 40, device="{DEVICE}"))
        before = peak()
        repr(x)
        print(peak() - before)
        """
    ).stdout
    assert int(peak) < 64
