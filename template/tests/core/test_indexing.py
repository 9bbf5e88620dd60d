"""Reading and writing with index tensors and masks, against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from core.comparisons import compare, layouts
from support import assert_same, natively, needs, run_python, sample

Function = Callable[..., Any]


def numbers(*shape: int, low: int = 0, high: int, seed: int = 3) -> torch.Tensor:
    """Return indices in [low, high)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator)


READS: dict[str, tuple[Function, torch.Tensor]] = {
    "gather_last": (lambda x, i: x.gather(-1, i), numbers(5, 6, 2, high=7)),
    "index_select_int32": (lambda x, i: x.index_select(0, i.int()), numbers(9, high=5)),
    "index_none": (lambda x, i: x[:, i], numbers(0, high=6)),
    "index_apart": (lambda x, i: x[i, :, i], numbers(3, 4, low=-5, high=5)),
    "index_broadcast": (lambda x, i: x[i, i.T], numbers(3, 1, high=5)),
    "index_and_slice": (lambda x, i: x[1:, i, ::2], numbers(4, high=6)),
    "mask_inside": (lambda x, i: x[:, i > 2], numbers(6, high=6)),
    "mask_and_index": (lambda x, i: x[i > 2, 0], numbers(5, high=6)),
}


@needs(torch.int32)
@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    function, index = READS[name]
    for values in layouts(5, 6, 7):
        compare(function, values, index)


def set_apart(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    x = x.clone().transpose(0, 2)
    x[index, :, index - 1] = source
    return x


WRITES: dict[str, tuple[Function, torch.Tensor, tuple[int, ...]]] = {
    "index_fill": (lambda x, i, s: x.index_fill(2, i, 1), numbers(4, low=-7, high=7), (1,)),
    "accumulate": (
        lambda x, i, s: x.index_put((i,), s, accumulate=True),
        numbers(8, low=-5, high=5),
        (8, 6, 7),
    ),
    "put": (lambda x, i, s: x.clone().put_(i, s), torch.tensor([[0, -1], [7, 100]]), (2, 2)),
    "apart": (set_apart, torch.tensor([4, 1, 0]), (3, 6)),
    "broadcast": (lambda x, i, s: x.index_put((i, i), s), torch.tensor([4, 1, 0]), (7,)),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str) -> None:
    function, index, source_shape = WRITES[name]
    for values in layouts(5, 6, 7):
        compare(function, values, index, sample(*source_shape, seed=1), rtol=1e-5, atol=1e-5)


def assign(x: torch.Tensor, mask: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[mask] = 3
    x[mask[:, 0, 0]] = 1
    x[:, index] = 7
    x[index, :, index + 1] = x[:3, :, 0].clone()
    x[..., index.tolist()] += 1
    x[1, 2] = x[0, 0]
    return x


def test_assignments() -> None:
    mask = sample(5, 6, 7) > 1
    for values in layouts(5, 6, 7):
        compare(assign, values, mask, torch.tensor([0, 2, 4]))


def test_an_assignment_by_a_mask_takes_one_element_of_the_cpu() -> None:
    values = torch.arange(4.0, device=DEVICE)
    values.index_put_((values > 1,), torch.tensor([7.0]))
    assert values.tolist() == [0, 1, 7, 7]


def test_an_assignment_by_a_mask_does_not_wait() -> None:
    values, mask = sample(40).to(DEVICE), sample(40).to(DEVICE) > 0
    with natively():
        values[mask] = 0.0
    assert_same(values, sample(40).masked_fill(sample(40) > 0, 0.0))


def test_cpu_indices_and_masks_are_accepted() -> None:
    values, index, mask = sample(5, 6), torch.tensor([4, 0]), sample(5) > 0
    here = values.to(DEVICE)
    with natively():
        assert_same(here[index], values[index])
        assert_same(here[mask], values[mask])
        here[index] = 0
        here.index_put_((index,), torch.tensor(1.0))
    values[index] = 1
    assert_same(here, values)


@needs(torch.int32, torch.int64)
@pytest.mark.parametrize("order", [(torch.int64, torch.int32), (torch.int32, torch.int64)])
def test_index_tensors_of_two_dtypes_are_converted_to_one(
    order: tuple[torch.dtype, torch.dtype],
) -> None:
    run_python(
        f"""
        import torch
        table = torch.arange(20.0).reshape(4, 5)
        places = (
            torch.tensor([[0], [3]], dtype={order[0]}), torch.tensor([1, -1, 4], dtype={order[1]})
        )
        there = table.to("{DEVICE}")
        moved = tuple(place.to("{DEVICE}") for place in places)
        assert there[moved].cpu().equal(table[places])
        put, new = torch.ops.aten._unsafe_index_put, torch.tensor(9.0)
        assert put(there, moved, new.to("{DEVICE}")).cpu().equal(put(table, places, new))
        there[moved] = -1
        table[places] = -1
        assert there.cpu().equal(table)
        """,
        {f"{ENV_PREFIX}_DEVICE_LAYERS": "validate"},
    )


@needs(torch.float32)
def test_index_reduce_warns_that_it_is_in_beta() -> None:
    torch.set_warn_always(True)
    try:
        for device in ("cpu", DEVICE):
            values, index = torch.ones(3, device=device), torch.tensor([0, 2], device=device)
            with pytest.warns(UserWarning, match="in beta"):
                values.index_reduce_(0, index, values[:2].clone(), "mean")
    finally:
        torch.set_warn_always(False)
