"""Sorting, joining, turning and cutting out, against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import (
    COMPLEX,
    FLOATING,
    INTEGERS,
    assert_same,
    compare,
    layouts,
    natively,
    needs,
    sample,
    supported,
)

Function = Callable[..., Any]
REAL = supported(FLOATING, INTEGERS, torch.bool)
ALL = supported(FLOATING, INTEGERS, COMPLEX, torch.bool)

ORDERS: dict[str, Function] = {
    "sort": lambda x: x.sort(dim=1, stable=True),
    "sort_columns": lambda x: x.sort(dim=0, stable=True, descending=True),
    "sort_values": lambda x: x.sort(1)[0],
    "argsort": lambda x: x.argsort(dim=-1, stable=True),
    "msort": lambda x: x.msort(),
    "topk": lambda x: x.topk(3, 1)[0],
    "topk_smallest": lambda x: x.topk(4, 0, largest=False)[0],
    "topk_of_none": lambda x: x.topk(0, 1),
    "kthvalue": lambda x: x.kthvalue(3, 1)[0],
    "kthvalue_keepdim": lambda x: x.kthvalue(1, 0, keepdim=True)[0],
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_orders(name: str, dtype: torch.dtype) -> None:
    if dtype is torch.bool and name.startswith(("kth", "topk")):
        pytest.skip("the CPU has neither kthvalue nor topk of truth values")
    for values in layouts(7, 9, dtype=dtype):
        compare(ORDERS[name], values)


MEDIANS: dict[str, Function] = {
    "median": lambda x: x.median(1),
    "median_of_columns": lambda x: x.median(0, keepdim=True),
    "median_of_all": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(1),
    "nanmedian_of_all": lambda x: x.nanmedian(),
}


@pytest.mark.parametrize("name", MEDIANS)
def test_medians(name: str) -> None:
    values = sample(7, 9)
    compare(MEDIANS[name], values)
    values[2, 3] = float("nan")
    compare(MEDIANS[name], values)
    compare(MEDIANS[name], torch.randperm(63).view(7, 9))


def test_indices_lead_to_the_values() -> None:
    values = sample(7, 9, low=0, high=3, dtype=torch.int64).to(DEVICE)
    with natively():
        results = (values.sort(1), values.topk(4, 1), values.kthvalue(3, 1, keepdim=True))
        for found, places in results:
            assert_same(values.gather(1, places), found)


def test_not_a_number_is_the_greatest() -> None:
    values = torch.tensor([1.0, float("nan"), float("inf"), -0.0, 0.0])
    compare(lambda x: x.sort(stable=True), values)
    compare(lambda x: x.sort(stable=True, descending=True), values)
    compare(lambda x: x.topk(2)[0], values)


def test_numbers_and_nothing_are_sorted() -> None:
    for values in (torch.tensor(3.0), torch.empty(0), torch.empty(3, 0)):
        compare(lambda x: x.sort(), values)
    compare(lambda x: x.topk(1), torch.tensor(3.0))
    compare(lambda x: x.kthvalue(1), torch.tensor(3.0))


def test_sorted_into_the_callers_tensors() -> None:
    values = sample(4, 6)
    expected = values.sort(1)
    wide = torch.empty(4, 12, device=DEVICE)
    places = torch.empty(0, dtype=torch.int64, device=DEVICE)
    with natively():
        torch.sort(values.to(DEVICE), 1, out=(wide[:, ::2], places))
    assert_same(wide[:, ::2], expected[0])
    assert_same(places, expected[1])
    with natively():
        torch.topk(values.to(DEVICE), 2, 1, out=(wide.resize_(4, 2), places.resize_(0)))
    assert_same(wide, values.topk(2, 1)[0])


def test_too_many_of_the_largest_are_refused() -> None:
    values = torch.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="k out of range"):
        values.topk(4)
    with pytest.raises(RuntimeError, match="out of range"):
        values.kthvalue(4)


ARRANGEMENTS: dict[str, Function] = {
    "cat": lambda x: torch.cat([x, x[:2], x[:0]]),
    "cat_columns": lambda x: torch.cat([x, x[:, :3], x[:, 1:2]], 1),
    "cat_of_none": lambda x: torch.cat([x.new_empty(0), x], -1),
    "stack": lambda x: torch.stack([x, x.flip(0)], 1),
    "hstack": lambda x: torch.hstack([x, x]),
    "flip": lambda x: x.flip(0, 1),
    "flip_none": lambda x: x.flip(()),
    "fliplr": lambda x: x.fliplr(),
    "rot90": lambda x: x.rot90(),
    "roll": lambda x: x.roll(2, 1),
    "roll_both": lambda x: x.roll((1, -3), (0, 1)),
    "roll_flat": lambda x: x.roll(-5),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "tile": lambda x: x.tile(2, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(-2),
    "tril_of_many": lambda x: x.expand(3, -1, -1).tril(-1),
    "diag_embed": lambda x: x.diag_embed(),
    "diagonal_scatter": lambda x: x.diagonal_scatter(x[:5, 0]),
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 2),
    "slice_scatter": lambda x: x.slice_scatter(x[:2], 0, 1, 3),
    "unfold": lambda x: x.unfold(1, 3, 2).contiguous(),
    "chunk": lambda x: x.chunk(3, 1),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 2)),
    "channel_shuffle": lambda x: torch.channel_shuffle(x.reshape(1, 6, 5, 1), 2),
    "pixel_shuffle": lambda x: torch.nn.functional.pixel_shuffle(x[:4].reshape(4, 2, 3), 2),
    "movedim": lambda x: x.movedim(0, 1).contiguous(),
}


@pytest.mark.parametrize("name", ARRANGEMENTS)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_arrangements(name: str, dtype: torch.dtype) -> None:
    for values in layouts(5, 6, dtype=dtype):
        compare(ARRANGEMENTS[name], values)


def test_joined_dtypes_are_promoted() -> None:
    compare(lambda x, y: torch.cat([x, y]), sample(3), torch.arange(4))


def test_joined_into_the_callers_tensor() -> None:
    values = sample(3, 4)
    wide = torch.empty(6, 8, device=DEVICE)
    with natively():
        torch.cat([values.to(DEVICE)] * 2, out=wide[:, ::2])
        assert_same(wide[:, ::2], torch.cat([values, values]))
        out = torch.empty(0, device=DEVICE)
        torch.stack([values.to(DEVICE)] * 2, out=out)
    assert_same(out, torch.stack([values, values]))


def test_tensors_of_different_devices_are_not_joined() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([torch.ones(2, device=DEVICE), torch.ones(2)])


def test_channels_last_is_kept() -> None:
    values = sample(2, 4, 5, 6).to(memory_format=torch.channels_last)
    compare(lambda x: torch.cat([x, x], 1), values)
    joined = torch.cat([values.to(DEVICE)] * 2, 1)
    assert joined.is_contiguous(memory_format=torch.channels_last)


def test_triangles_in_place() -> None:
    base = sample(5, 7)
    here = base.to(DEVICE)
    with natively():
        here.T.tril_(1)
        here.triu_(-2)
    base.T.tril_(1)
    base.triu_(-2)
    assert_same(here, base)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (0, 2), (4, 4)])
def test_made_of_nothing(shape: tuple[int, int]) -> None:
    rows, columns = shape
    for offset in (0, 1, -2):
        with natively():
            lower = torch.tril_indices(rows, columns, offset, device=DEVICE)
            upper = torch.triu_indices(rows, columns, offset, device=DEVICE)
            eye = torch.eye(rows, columns, device=DEVICE)
        assert_same(lower, torch.tril_indices(rows, columns, offset))
        assert_same(upper, torch.triu_indices(rows, columns, offset))
        assert_same(eye, torch.eye(rows, columns))


@needs(torch.float64)
def test_gradients_of_windows_that_overlap() -> None:
    values = sample(4, 9, dtype=torch.float64).to(DEVICE).requires_grad_()
    with natively():
        assert torch.autograd.gradcheck(lambda x: x.unfold(1, 4, 2), values)


COUNTS: dict[str, Function] = {
    "unique": lambda x: x.unique(),
    "unique_with_all": lambda x: x.unique(return_inverse=True, return_counts=True),
    "unique_consecutive": lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
    "bincount": lambda x: x.view(-1).abs().bincount(),
    "bincount_with_weights": lambda x: x.view(-1).abs().bincount(x.view(-1).float(), 20),
}


@pytest.mark.parametrize("name", COUNTS)
def test_distinct_elements(name: str) -> None:
    def moved(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = COUNTS[name](values)
        return result if isinstance(result, tuple) else (result,)

    for shape in ((5, 6), (0,), (40,)):
        values = sample(*shape, dtype=torch.int64, low=-3, high=3)
        for mine, theirs in zip(moved(values.to(DEVICE)), moved(values), strict=True):
            assert_same(mine, theirs)


def test_every_nan_is_distinct() -> None:
    values = torch.tensor([1.0, float("nan"), 1.0, float("nan")])
    assert_same(values.to(DEVICE).unique(), values.unique())


def test_equal_and_trace() -> None:
    values = sample(4, 6).to(DEVICE)
    with natively():
        assert torch.equal(values, values.clone())
        assert not torch.equal(values, values[:, :5])
        assert not torch.equal(values, values + 1)
        assert_same(values.trace(), sample(4, 6).trace())


@pytest.mark.parametrize("dtype", supported(FLOATING), ids=str)
def test_evenly_spaced_numbers(dtype: torch.dtype) -> None:
    for start, end, steps in ((0.0, 1.0, 11), (3.0, -2.0, 6), (1.0, 5.0, 1), (1.0, 2.0, 0)):
        with natively():
            found = torch.linspace(start, end, steps, dtype=dtype, device=DEVICE)
        assert_same(found, torch.linspace(start, end, steps, dtype=dtype))
    with natively(), pytest.warns(UserWarning, match="deprecated"):
        found = torch.range(0, 2, 0.5, dtype=dtype, device=DEVICE)
    assert_same(found, torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0], dtype=dtype))


def test_repeat_interleave_by_a_tensor() -> None:
    values, repeats = sample(5, 3), torch.tensor([0, 2, 1, 0, 3])
    found = values.to(DEVICE).repeat_interleave(repeats.to(DEVICE), 0)
    assert_same(found, values.repeat_interleave(repeats, 0))


@pytest.mark.native
class TestTies:
    """Equal elements keep their order, as on CUDA, whether that is asked for or not."""

    VALUES = sample(8000, dtype=torch.int64, low=0, high=9)

    @pytest.mark.parametrize("descending", [False, True])
    @pytest.mark.parametrize("dtype", supported(torch.uint8, torch.int64, torch.float32))
    def test_sorts_are_stable(self, dtype: torch.dtype, descending: bool) -> None:
        values = self.VALUES.to(dtype)
        expected = values.sort(stable=True, descending=descending)
        here = values.to(DEVICE)
        for actual in (
            here.sort(descending=descending),
            torch.sort(here, stable=False, descending=descending),
        ):
            assert_same(actual[0], expected[0])
            assert_same(actual[1], expected[1])
        assert_same(here.argsort(descending=descending), expected[1])

    def test_of_the_last_ones_the_first_are_taken(self) -> None:
        values = self.VALUES.float()
        expected = values.sort(stable=True, descending=True)
        actual = values.to(DEVICE).topk(300)
        assert_same(actual[0], expected[0][:300])
        assert_same(actual[1], expected[1][:300])

    def test_columns_and_gaps(self) -> None:
        values = self.VALUES.float().view(40, 200)
        for table in (values.T, values[:, ::3], values.view(40, 20, 10).permute(2, 0, 1)):
            expected = table.sort(dim=0, stable=True)
            actual = table.to(DEVICE).sort(0)
            assert_same(actual[0], expected[0])
            assert_same(actual[1], expected[1])


@pytest.mark.native
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("step", [1, 2])
def test_sorted_tensors_keep_strides(order: tuple[int, ...], step: int) -> None:
    values = sample(4, 6, 5).permute(order)[::step]
    base = sample(4, 6, 5).to(DEVICE).permute(order)[::step]
    for mine, theirs in zip(base.sort(1), values.sort(1), strict=True):
        assert mine.stride() == theirs.stride()


def test_sorts_into_its_input() -> None:
    values = sample(5, 4).to(DEVICE)
    expected = values.sort(0)
    places = torch.empty_like(values, dtype=torch.int64)
    torch.sort(values, 0, out=(values, places))
    assert_same(values, expected[0])
    assert_same(places, expected[1])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.kthvalue(1, 1),
        lambda x: x.median(1),
        lambda x: x.nanmedian(1),
        lambda x: x.mode(1),
        lambda x: x.max(1),
        lambda x: x.argmin(1),
        lambda x: x.amax(1),
        lambda x: x.cummax(1)[0].max(1),
    ],
)
def test_along_an_empty_dimension(call: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(IndexError) as expected:
        call(torch.zeros(2, 0))
    with pytest.raises(IndexError) as actual:
        call(torch.zeros(2, 0, device=DEVICE))
    assert str(actual.value).partition("\n")[0] == str(expected.value).partition("\n")[0]
