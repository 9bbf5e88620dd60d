"""Reading and writing at places that index tensors and masks name, against the CPU."""

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
    needs_two_devices,
    sample,
    supported,
)

Function = Callable[..., Any]
DTYPES = supported(FLOATING, INTEGERS, COMPLEX, torch.bool)


def numbers(*shape: int, low: int = 0, high: int, seed: int = 3) -> torch.Tensor:
    """Return indices in [low, high)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator)


READS: dict[str, tuple[Function, torch.Tensor]] = {
    "gather": (lambda x, i: x.gather(1, i), numbers(4, 3, 7, high=6)),
    "gather_last": (lambda x, i: x.gather(-1, i), numbers(5, 6, 2, high=7)),
    "take_along_dim": (lambda x, i: x.take_along_dim(i, 1), numbers(5, 2, 7, high=6)),
    "index_select": (lambda x, i: x.index_select(1, i), numbers(9, high=6)),
    "index_select_int32": (lambda x, i: x.index_select(0, i.int()), numbers(9, high=5)),
    "index_select_number": (lambda x, i: x.index_select(2, i), torch.tensor(3)),
    "index": (lambda x, i: x[i], numbers(3, 4, low=-5, high=5)),
    "index_inside": (lambda x, i: x[:, i], numbers(3, 4, low=-6, high=6)),
    "index_last": (lambda x, i: x[..., i], numbers(8, low=-7, high=7)),
    "index_two": (lambda x, i: x[i, i], numbers(3, 4, low=-5, high=5)),
    "index_apart": (lambda x, i: x[i, :, i], numbers(3, 4, low=-5, high=5)),
    "index_broadcast": (lambda x, i: x[i, i.T], numbers(3, 1, high=5)),
    "index_and_slice": (lambda x, i: x[1:, i, ::2], numbers(4, high=6)),
    "index_all": (lambda x, i: x[i, i, i], numbers(4, high=5)),
    "take": (lambda x, i: x.take(i), numbers(3, 4, low=-210, high=210)),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reads(name: str, dtype: torch.dtype) -> None:
    if name == "index_select_int32" and torch.int32 not in supported():
        pytest.skip("generated without int32")
    function, index = READS[name]
    for values in layouts(5, 6, 7, dtype=dtype):
        compare(function, values, index)


@pytest.mark.parametrize("name", ["index", "index_inside", "index_select", "gather", "take"])
def test_no_index_reads_nothing(name: str) -> None:
    function, index = READS[name]
    shape = (0, 3, 7) if name == "gather" else (0,)
    compare(function, sample(5, 6, 7), index.new_empty(shape))


MASKS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "mask": (lambda x, m: x[m], (5, 6, 7)),
    "mask_of_rows": (lambda x, m: x[m], (5,)),
    "mask_inside": (lambda x, m: x[:, m], (6,)),
    "mask_and_index": (lambda x, m: x[m, 0], (5,)),
    "masked_select": (lambda x, m: x.masked_select(m), (5, 6, 7)),
    "masked_select_row": (lambda x, m: x.masked_select(m), (7,)),
    "masked_fill": (lambda x, m: x.masked_fill(m, 1), (6, 7)),
    "masked_fill_tensor": (lambda x, m: x.masked_fill(m, x.sum((0, 1, 2)) > 0), (6, 7)),
    "masked_scatter": (lambda x, m: x.masked_scatter(m, x.flip(0)), (6, 1)),
    "where": (lambda x, m: torch.where(m, x, x.flip(0)), (6, 7)),
    "nonzero": (lambda x, m: m.nonzero(), (5, 6)),
    "nonzero_of_numbers": (lambda x, m: x.nonzero(), ()),
    "nonzero_as_tuple": (lambda x, m: m.nonzero(as_tuple=True), (5, 6)),
    "nonzero_static": (lambda x, m: torch.nonzero_static(m, size=9, fill_value=-1), (2, 3)),
    "argwhere": (lambda x, m: torch.argwhere(m), (5, 6)),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", supported(torch.float32, torch.int64, torch.bool), ids=str)
def test_masks(name: str, dtype: torch.dtype) -> None:
    function, shape = MASKS[name]
    if name == "masked_fill_tensor" and dtype is torch.bool:
        pytest.skip("sums of truth values are another operator")
    for density in (0.0, 0.5, 1.0):
        generator = torch.Generator().manual_seed(1)
        mask = torch.rand(shape, generator=generator) < density
        for values in layouts(5, 6, 7, dtype=dtype):
            compare(function, values, mask)


def test_nonzero_of_a_number_and_of_nothing() -> None:
    for values in (torch.tensor(3.0), torch.tensor(0.0), torch.empty(0, 3)):
        compare(torch.nonzero, values)


def set_apart(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    x = x.clone().transpose(0, 2)
    x[index, :, index - 1] = source
    return x


WRITES: dict[str, tuple[Function, torch.Tensor, tuple[int, ...]]] = {
    "scatter": (
        lambda x, i, s: x.scatter(1, i, s),
        torch.arange(6).flip(0).view(1, 6, 1).expand(4, -1, 6),
        (5, 6, 7),
    ),
    "scatter_value": (lambda x, i, s: x.scatter(1, i, 1), numbers(4, 3, 7, high=6), (1,)),
    "scatter_add": (lambda x, i, s: x.scatter_add(2, i, s), numbers(4, 3, 9, high=7), (4, 5, 9)),
    "scatter_multiply": (
        lambda x, i, s: x.scatter(0, i, s, reduce="multiply"),
        numbers(2, 3, 7, high=5),
        (4, 3, 7),
    ),
    "scatter_add_value": (
        lambda x, i, s: x.scatter(0, i, 1, reduce="add"),
        numbers(9, 3, 7, high=5),
        (1,),
    ),
    "index_add": (lambda x, i, s: x.index_add(1, i, s), numbers(4, high=6), (5, 4, 7)),
    "index_copy": (lambda x, i, s: x.index_copy(1, i, s), torch.tensor([5, 0, 3]), (5, 3, 7)),
    "index_fill": (lambda x, i, s: x.index_fill(2, i, 1), numbers(4, low=-7, high=7), (1,)),
    "index_fill_tensor": (
        lambda x, i, s: x.index_fill(2, i, s.reshape(())),
        numbers(4, high=7),
        (1,),
    ),
    "index_put": (
        lambda x, i, s: x.index_put((i,), s),
        torch.tensor([[4, -4], [0, 2]]),
        (2, 2, 6, 7),
    ),
    "index_put_apart": (set_apart, torch.tensor([4, 1, 0]), (3, 6)),
    "index_put_broadcast": (
        lambda x, i, s: x.index_put((i, i), s),
        torch.tensor([4, 1, 0]),
        (7,),
    ),
    "accumulate": (
        lambda x, i, s: x.index_put((i,), s, accumulate=True),
        numbers(8, low=-5, high=5),
        (8, 6, 7),
    ),
    "put": (lambda x, i, s: x.clone().put_(i, s), torch.tensor([[0, -1], [7, 100]]), (2, 2)),
    "put_accumulate": (
        lambda x, i, s: x.clone().put_(i, s, accumulate=True),
        numbers(40, high=9),
        (40,),
    ),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_writes(name: str, dtype: torch.dtype) -> None:
    function, index, source_shape = WRITES[name]
    if dtype is torch.bool and name in ("put_accumulate", "scatter_multiply"):
        pytest.skip("the CPU does not do this with truth values")
    source = sample(*source_shape, dtype=dtype, low=0, high=2, seed=1)
    tolerance = 0.05 if dtype in (torch.float16, torch.bfloat16) else 1e-5
    for values in layouts(5, 6, 7, dtype=dtype):
        if dtype.is_floating_point or dtype.is_complex:
            compare(function, values, index, source, rtol=tolerance, atol=tolerance)
        else:
            compare(function, values, index, source)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", supported(torch.float32, torch.int64), ids=str)
def test_reductions_at_places(dtype: torch.dtype, reduce: str, include_self: bool) -> None:
    values, source = sample(5, 6, 7, dtype=dtype), sample(5, 4, 7, dtype=dtype, seed=1)
    index = numbers(5, 4, 7, high=6)
    compare(
        lambda x, i, s: x.scatter_reduce(1, i, s, reduce, include_self=include_self),
        *(values, index, source),
        **({"rtol": 1e-5, "atol": 1e-5} if dtype.is_floating_point else {}),
    )
    if reduce != "sum":
        compare(
            lambda x, i, s: x.index_reduce(1, i, s, reduce, include_self=include_self),
            *(values, index[0, :, 0].contiguous(), source),
            **({"rtol": 1e-5, "atol": 1e-5} if dtype.is_floating_point else {}),
        )


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


def test_a_value_for_one_mask_needs_no_waiting_for_the_device() -> None:
    values, mask = sample(40).to(DEVICE), sample(40).to(DEVICE) > 0
    with natively():
        values[mask] = 0.0
    assert_same(values, sample(40).masked_fill(sample(40) > 0, 0.0))


def test_indices_and_masks_of_the_cpu_are_taken() -> None:
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
def test_indices_have_types_of_their_own(order: tuple[torch.dtype, torch.dtype]) -> None:
    there = sample(3, 5)
    indices = [torch.tensor([[0], [2]], dtype=order[0]), torch.tensor([1, -1, 4], dtype=order[1])]
    here, places = there.to(DEVICE), [index.to(DEVICE) for index in indices]
    assert_same(torch.ops.aten.index(here, places), torch.ops.aten.index(there, indices))
    put = torch.ops.aten._unsafe_index_put
    new = torch.tensor(9.0)
    assert_same(put(here, places, new.to(DEVICE)), put(there, indices, new))


def test_results_go_into_the_callers_tensors() -> None:
    values, index = sample(5, 6), numbers(4, high=5)
    here, places = values.to(DEVICE), index.to(DEVICE)
    wide = torch.empty(4, 12, device=DEVICE)
    with natively():
        for out in (torch.empty(0, device=DEVICE), wide[:, ::2]):
            assert torch.index_select(here, 0, places, out=out) is out
            assert_same(out, values.index_select(0, index))
        out = torch.empty(0, device=DEVICE)
        torch.gather(here, 0, places.view(4, 1), out=out)
        assert_same(out, values.gather(0, index.view(4, 1)))
        torch.masked_select(here, here > 0, out=out)
        assert_same(out, values.masked_select(values > 0))
        torch.take(here, places, out=out)
        assert_same(out, values.take(index))
        count = torch.empty(0, dtype=torch.int64, device=DEVICE)
        torch.nonzero(here > 0, out=count)
        assert_same(count, (values > 0).nonzero())


def test_in_place_operators_keep_the_tensor() -> None:
    base = sample(6, 5)
    here = base.to(DEVICE).T
    address = here.data_ptr()
    index = torch.tensor([0, 2]).to(DEVICE)
    with natively():
        here.index_add_(1, index, torch.ones(5, 2, device=DEVICE), alpha=2)
        here.index_fill_(0, index, 9.0)
        here.scatter_(0, index.view(1, 2), 4.0)
        here.masked_fill_(here > 8, 8.0)
    expected = base.T.clone()
    expected.index_add_(1, index.cpu(), torch.ones(5, 2), alpha=2)
    expected.index_fill_(0, index.cpu(), 9.0)
    expected.scatter_(0, index.cpu().view(1, 2), 4.0)
    expected.masked_fill_(expected > 8, 8.0)
    assert here.data_ptr() == address
    assert_same(here, expected)


GRADIENTS: dict[str, Function] = {
    "gather": lambda x, i: x.gather(0, i.expand(2, 6)),
    "index": lambda x, i: x[i.view(-1)],
    "index_mixed": lambda x, i: x[i.view(-1), 1:3],
    "mask": lambda x, i: x[x > 0],
    "masked_select": lambda x, i: x.masked_select(x > 0),
    "masked_fill": lambda x, i: x.masked_fill(x > 0, 2.0),
    "index_select": lambda x, i: x.index_select(1, i.view(-1)),
    "index_add": lambda x, i: x.index_add(0, i.view(-1), x[:2] * 2),
    "index_put": lambda x, i: x.index_put((i.view(-1),), x[0] * 3),
    "scatter": lambda x, i: x.scatter(0, i.expand(2, 6), x[2:4] * 2),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i.expand(2, 6), x[2:4], "amax"),
    "take": lambda x, i: x.take(i),
    "select_and_slice": lambda x, i: x[1] * 2 + x[2:4, :].sum(0) + x.diagonal().sum(),
    "unfold": lambda x, i: x.unfold(1, 3, 1).sin(),
    "unfold_apart": lambda x, i: x.unfold(1, 2, 3).sin(),
    "sort": lambda x, i: x.sort(1)[0] * x,
    "topk": lambda x, i: x.topk(3, 1)[0].sin(),
    "tril": lambda x, i: x.tril(1).sin(),
    "cat": lambda x, i: torch.cat([x, x * 2], 1).sin(),
    "flip": lambda x, i: x.flip(0, 1) * x,
    "roll": lambda x, i: x.roll((1, 2), (0, 1)) * x,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    def gradient(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        result = GRADIENTS[name](x, index)
        (grad,) = torch.autograd.grad((result * result).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(grad.sum(), x)
        return second

    compare(gradient, sample(5, 6), torch.tensor([[0], [3]]), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_embedding(options: dict[str, Any]) -> None:
    def train(weight: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight = weight.detach().requires_grad_()
        found = torch.nn.functional.embedding(index, weight, **options)
        found.sin().sum().backward()
        assert weight.grad is not None
        return found.detach(), weight.grad

    for weight in layouts(9, 5):
        compare(train, weight, numbers(3, 4, high=4), rtol=1e-5, atol=1e-5)


def test_renorm_scales_the_rows_that_are_looked_up() -> None:
    def look_up(weight: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight = weight.clone()
        return torch.nn.functional.embedding(index, weight, max_norm=2.0), weight

    weight, index = sample(9, 5), numbers(3, 4, high=4)
    for mine, theirs in zip(
        look_up(weight.to(DEVICE), index.to(DEVICE)), look_up(weight, index), strict=True
    ):
        assert_same(mine, theirs)


def test_one_hot() -> None:
    compare(lambda i: torch.nn.functional.one_hot(i, 7), numbers(3, 4, high=7))


@needs_two_devices
def test_indexing_on_a_device_that_is_not_current() -> None:
    values = sample(5, 3).to(f"{DEVICE}:1")
    found = values[torch.tensor([1, 4], device=values.device)]
    assert found.device == values.device
    assert_same(found, sample(5, 3)[[1, 4]])


@pytest.mark.native
@needs(torch.float16)
def test_long_sums_at_one_place_stay_accurate() -> None:
    values = torch.zeros(1, dtype=torch.float16, device=DEVICE)
    index = torch.zeros(4096, dtype=torch.int64, device=DEVICE)
    ones = torch.ones(4096, dtype=torch.float16, device=DEVICE)
    assert values.index_add(0, index, ones).item() == 4096
