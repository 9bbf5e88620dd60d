"""Copies that return while the stream is busy, and their guarantees."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE, backend
from support import keep_busy, needs, sample

LARGE = (300, 400)

pytestmark = needs(torch.float32, torch.float16)


@pytest.fixture
def busy() -> None:
    keep_busy(seconds=0.5)


def is_busy() -> bool:
    return not backend.current_stream().query()


SMALL: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[::2, 1:],
    "expanded": lambda x: x[:1].expand(5, -1),
    "negative": torch._neg_view,
    "pinned": lambda x: x.pin_memory(),
    "one number": lambda x: x[1, 2],
}


@pytest.mark.parametrize("layout", SMALL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_small_copies_to_the_device_do_not_wait(
    busy: None, layout: str, dtype: torch.dtype
) -> None:
    source = sample(6, 8)
    expected = SMALL[layout](source).to(dtype, copy=True)
    part = SMALL[layout](source)
    moved = part.to(DEVICE, dtype)
    assert is_busy()
    part.copy_(torch.zeros(())) if layout != "expanded" else source.zero_()
    assert moved.cpu().equal(expected)


def test_tensors_of_numbers_and_lists_do_not_wait(busy: None) -> None:
    number, several = torch.tensor(3.0, device=DEVICE), torch.tensor([1.0, 2.0], device=DEVICE)
    target = torch.zeros(4, device=DEVICE)
    target[1] = 5.0
    target[2:].copy_(torch.tensor([6.0, 7.0]))
    assert is_busy()
    assert number.item() == 3
    assert several.tolist() == [1, 2]
    assert target.tolist() == [0, 5, 6, 7]


def test_many_small_copies_keep_their_order_and_their_values(busy: None) -> None:
    source, target = torch.empty(100), torch.zeros(100, device=DEVICE)
    total = torch.zeros(100, device=DEVICE)
    for number in range(200):
        target.copy_(source.fill_(number))
        total += target
    assert total.cpu().eq(sum(range(200))).all()


PINNED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[::2, 1:],
    "negative": torch._neg_view,
}


@pytest.mark.parametrize("layout", PINNED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_copies_from_pinned_memory_convert_without_waiting(
    busy: None, layout: str, dtype: torch.dtype
) -> None:
    source = PINNED[layout](sample(*LARGE).pin_memory())
    moved = torch.empty(source.shape, dtype=dtype, device=DEVICE)
    moved.copy_(source, non_blocking=True)
    assert is_busy()
    assert moved.cpu().equal(source.to(dtype))


def test_copies_to_pinned_memory_reorder_without_waiting(busy: None) -> None:
    values = sample(*LARGE)
    source = values.pin_memory().to(DEVICE, non_blocking=True)
    target = torch.empty(LARGE[::-1], pin_memory=True)
    for _ in range(20):
        source = source + 1
    target.copy_(source.T, non_blocking=True)
    assert is_busy()
    backend.synchronize()
    expected = values
    for _ in range(20):
        expected = expected + 1
    assert target.equal(expected.T)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_large_sources_can_be_changed_after_the_call(busy: None, non_blocking: bool) -> None:
    source = sample(*LARGE)
    expected = source.clone()
    moved = source.to(DEVICE, non_blocking=non_blocking)
    source.zero_()
    assert moved.cpu().equal(expected)


def test_copies_to_the_host_are_complete(busy: None) -> None:
    source = torch.zeros(LARGE, device=DEVICE)
    for _ in range(50):
        source += 1
    assert source.T.to("cpu", torch.float16).eq(50).all()
    assert source.to("cpu", non_blocking=False).eq(50).all()
