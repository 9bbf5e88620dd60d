"""Copies in every direction, for every dtype and layout, with conjugate and negative bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from support import (
    COMPLEX,
    FLOATING,
    INTEGERS,
    needs,
    needs_two_devices,
    run_python,
    sample,
    supported,
)

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "stepped": lambda x: x[::2, 1:, ::3],
    "offset": lambda x: x[1:],
    "expanded": lambda x: x[:1].expand(4, -1, -1),
    "one element": lambda x: x[1, 2, 3],
    "empty": lambda x: x[:0],
}
LAST = torch.device(DEVICE, backend.device_count() - 1)


def base(dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return sample(4, 5, 6, dtype=dtype, low=0, high=5, seed=seed)


def with_bits(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensor and its negative view, and for complex ones what conj() and imag make of it.

    The CPU negates neither truth values nor numbers of 8 bits.
    """
    if not tensor.is_complex():
        negates = tensor.dtype in FLOATING
        return [tensor, torch._neg_view(tensor)] if negates else [tensor]
    return [tensor, tensor.conj(), torch._neg_view(tensor), tensor.real, tensor.conj().imag]


def on_device(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """Make the layout on the device, so that the copy back is what is tested."""
    return LAYOUTS[layout](tensor.to(DEVICE))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_to_the_device_and_back_keeps_values_and_strides(dtype: torch.dtype, layout: str) -> None:
    for expected in with_bits(LAYOUTS[layout](base(dtype))):
        for non_blocking in (False, True):
            moved = expected.to(DEVICE, non_blocking=non_blocking)
            assert moved.device.type == DEVICE
            back = moved.to("cpu", non_blocking=non_blocking)
            backend.synchronize()
            assert back.equal(expected)
            assert moved.stride() == expected.clone().stride()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_from_every_layout_of_the_device(dtype: torch.dtype, layout: str) -> None:
    values = base(dtype)
    sources = with_bits(on_device(values, layout))
    for source, expected in zip(sources, with_bits(LAYOUTS[layout](values)), strict=True):
        assert source.is_conj() == expected.is_conj()
        assert source.is_neg() == expected.is_neg()
        assert source.cpu().equal(expected)
        assert source.clone().cpu().equal(expected)
        assert source.to(LAST).cpu().equal(expected)
        assert source.contiguous().cpu().equal(expected)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "stepped", "offset"])
@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_into_every_layout_from_everywhere(dtype: torch.dtype, layout: str) -> None:
    values = base(dtype, seed=1)
    expected = base(dtype)
    LAYOUTS[layout](expected).copy_(LAYOUTS[layout](values))
    for source in (values, values.to(DEVICE), values.to(LAST)):
        target = base(dtype).to(DEVICE)
        LAYOUTS[layout](target).copy_(LAYOUTS[layout](source))
        assert target.cpu().equal(expected)
    host = base(dtype)
    LAYOUTS[layout](host).copy_(LAYOUTS[layout](values.to(DEVICE)))
    assert host.equal(expected)


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_to_every_other_dtype(dtype: torch.dtype) -> None:
    values = base(dtype)
    real = values.real if dtype.is_complex else values
    for other in supported():
        source = values if other.is_complex else real
        expected = source.to(other)
        moved = source.to(DEVICE)
        assert moved.to(other).cpu().equal(expected)
        assert source.to(DEVICE, other).cpu().equal(expected)
        assert moved.to("cpu", other).equal(expected)
        assert torch.empty_like(expected, device=DEVICE).copy_(source).cpu().equal(expected)
        assert torch.empty_like(expected).copy_(moved).equal(expected)


@needs_two_devices
@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_between_devices_with_conversion(dtype: torch.dtype) -> None:
    values = base(dtype).real
    source = values.to(DEVICE).transpose(0, 1)
    for other in supported():
        moved = source.to(LAST, other)
        assert moved.device == LAST
        assert moved.cpu().equal(values.to(other).transpose(0, 1))


@pytest.mark.parametrize("dtype", supported(COMPLEX), ids=str)
def test_conjugate_and_negative_targets_receive_the_right_values(dtype: torch.dtype) -> None:
    values, source = base(dtype), base(dtype, seed=1)
    for view in (torch.conj, torch._neg_view, lambda x: x.conj().imag):
        expected = values.clone()
        view(expected).copy_(source if view(expected).is_complex() else source.real)
        for origin in (source, source.to(DEVICE)):
            target = values.to(DEVICE)
            view(target).copy_(origin if view(target).is_complex() else origin.real)
            assert target.cpu().equal(expected)


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
    """Return what of ``BITS`` a tensor can have: truth values and unsigned ones have no negative."""
    if dtype.is_complex:
        return list(BITS)
    signed = dtype in FLOATING or (dtype in INTEGERS and dtype is not torch.uint8)
    return ["plain", "neg"] if signed else ["plain"]


@pytest.mark.parametrize("from_dtype", KINDS, ids=str)
@pytest.mark.parametrize("to_dtype", KINDS, ids=str)
def test_bits_are_honoured_whatever_else_a_copy_does(
    to_dtype: torch.dtype, from_dtype: torch.dtype
) -> None:
    """The oracle gives the CPU plain values of the target's own dtype: where it converts as well,
    it forgets negative bits of float16.
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


@needs(torch.float32)
def test_copy_of_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RuntimeError, match="size"):
        torch.zeros(3, device=DEVICE).copy_(torch.zeros(4))


@needs(torch.float32)
@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format])
def test_memory_format_is_kept_and_can_be_chosen(format: torch.memory_format) -> None:
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
    assert tensor.cpu().equal(sample(10))


@needs(torch.float32)
def test_clone_and_copy_are_ordered_after_the_work_before_them() -> None:
    value = torch.zeros(1000, device=DEVICE)
    for _ in range(100):
        value += 1
    assert value.clone().cpu().eq(100).all()
    assert value.sum().item() == 100_000


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
def test_printing_copies_what_is_shown() -> None:
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
