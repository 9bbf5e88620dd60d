"""Tensors: factories, dtypes, layouts, views, operators and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend, bits, computed_by_the_cpu
from smoke.helpers import compare, layouts
from support import assert_same, moved, needs_two_devices, sample

DTYPES = backend.supported_dtypes()
STORAGE_ONLY = [
    dtype
    for dtype in (torch.float8_e4m3fn, torch.uint16, torch.complex128, torch.float64)
    if backend.dtype_support(dtype) != "supported"
]
LAYOUTS = ["contiguous", "transposed", "strided", "offset", "expanded"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factories(dtype: torch.dtype) -> None:
    options = {"dtype": dtype, "device": DEVICE}
    for made, expected in (
        (torch.zeros(2, 3, **options), torch.zeros(2, 3, dtype=dtype)),
        (torch.ones(2, 3, **options), torch.ones(2, 3, dtype=dtype)),
        (torch.full((4,), 1, **options), torch.full((4,), 1, dtype=dtype)),
        (torch.tensor([0, 1, 1], **options), torch.tensor([0, 1, 1], dtype=dtype)),
        (torch.empty(0, 3, **options), torch.empty(0, 3, dtype=dtype)),
        (torch.zeros(2, **options).new_ones(3), torch.ones(3, dtype=dtype)),
        (torch.ones_like(torch.empty(2, **options)), torch.ones(2, dtype=dtype)),
    ):
        assert_same(made, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.arange(3, 20, 4, device=device),
        lambda device: torch.linspace(0, 1, 7, device=device),
        lambda device: torch.eye(3, 4, device=device),
        lambda device: torch.scalar_tensor(2.5, device=device),
        lambda device: torch.empty_strided((2, 3), (1, 2), device=device).fill_(3),
    ],
    ids=["arange", "linspace", "eye", "scalar_tensor", "empty_strided"],
)
def test_more_factories(make: Callable[[str], torch.Tensor]) -> None:
    made, expected = make(DEVICE), make("cpu")
    assert made.stride() == expected.stride()
    assert_same(made, expected)


@pytest.mark.parametrize("dtype", [*DTYPES, *STORAGE_ONLY], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_equal_after_a_copy_to_the_device_and_back(
    dtype: torch.dtype, layout: str
) -> None:
    values = layouts(3, 4)[layout].to(dtype)
    there = values.to(DEVICE)
    assert there.dtype is dtype
    for tensor in (there, there.clone(), moved(values).contiguous()):
        assert torch.equal(bits(tensor.cpu()), bits(values))


@pytest.mark.parametrize("dtype", STORAGE_ONLY, ids=str)
def test_storage_only_dtypes_move_and_convert(dtype: torch.dtype) -> None:
    values = torch.arange(6, dtype=torch.float32).to(dtype)
    there = values.to(DEVICE)
    assert_same(there.to(torch.float32), values.to(torch.float32))
    assert_same(torch.arange(6.0, device=DEVICE).to(dtype).to(torch.float32), values.float())
    assert_same(there[2:4].view(torch.uint8), values[2:4].view(torch.uint8))


UNARY = [torch.neg, torch.abs, torch.exp, torch.tanh, torch.sigmoid, torch.relu, torch.isnan]
BINARY = [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.eq, torch.lt]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", UNARY, ids=lambda operator: operator.__name__)
def test_unary_operators(operator: Any, layout: str) -> None:
    compare(operator, layouts(3, 4)[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", BINARY, ids=lambda operator: operator.__name__)
def test_binary_operators(operator: Any, layout: str) -> None:
    values = layouts(3, 4)[layout]
    compare(operator, values, sample(3, 4, seed=1))
    compare(operator, values, sample(4, seed=1))
    if operator is not torch.maximum:
        compare(operator, values, 2.5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "operator",
    [
        torch.sum,
        torch.argmax,
        torch.all,
        lambda x: x.mean(1),
        lambda x: x.amax(0, keepdim=True),
        lambda x: x.max(-1),
        lambda x: x.cumsum(0),
        lambda x: x.var((0, 1)),
        lambda x: x.softmax(-1),
    ],
)
def test_reductions(operator: Any, layout: str) -> None:
    compare(operator, layouts(3, 4)[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_matrices(layout: str) -> None:
    values = layouts(3, 4)[layout]
    compare(torch.mm, values, sample(4, 5))
    compare(torch.mm, sample(2, 3), values)
    compare(torch.mv, values, sample(4))
    compare(torch.addmm, sample(5), values, sample(4, 5))
    compare(torch.nn.functional.linear, values, sample(6, 4), sample(6))
    compare(torch.bmm, sample(2, 3, 4), sample(2, 4, 5))
    compare(torch.matmul, sample(2, 1, 3, 4), sample(5, 4, 2))
    compare(torch.einsum, "ij,kj->ik", values, sample(5, 4))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
def test_tensors_without_elements(shape: tuple[int, ...]) -> None:
    values = sample(*shape)
    for operator in (torch.neg, torch.exp, torch.sum, lambda x: x + x, lambda x: x.clone()):
        compare(operator, values)
    compare(torch.mm, sample(3, 0), sample(0, 2))
    compare(torch.cat, [values, values])


INDEXED = [
    lambda x: x[1],
    lambda x: x[:, 1:3],
    lambda x: x[torch.tensor([2, 0, 2], device=x.device)],
    lambda x: x[x > 0],
    lambda x: x[..., None, -1],
    lambda x: x.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]], device=x.device)),
    lambda x: x.index_select(0, torch.tensor([1, 1], device=x.device)),
    lambda x: torch.where(x > 0, x, -x),
    lambda x: torch.cat([x, x[:1]]),
    lambda x: torch.stack([x, x], 1),
    lambda x: x.masked_fill(x < 0, 7),
    lambda x: x.flip(0),
    lambda x: x.triu(),
    lambda x: x.sort(1),
    lambda x: x.topk(2),
    lambda x: x.repeat(2, 1),
    lambda x: x.roll(1, 0),
    lambda x: torch.nn.functional.embedding(torch.tensor([0, 2], device=x.device), x),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", INDEXED)
def test_indexing_and_arranging(operator: Any, layout: str) -> None:
    values = layouts(3, 4)[layout]
    if layout == "expanded":  # equal rows have no unique order
        values = values.clone()
    compare(operator, values)


VIEWS = [
    lambda x: x.view(-1),
    lambda x: x.t(),
    lambda x: x[1:, ::2],
    lambda x: x.unsqueeze(0),
    lambda x: x.expand(2, 3, 4),
    lambda x: x.diagonal(),
    lambda x: x.as_strided((2, 2), (4, 1), 1),
    lambda x: x.unfold(1, 2, 1),
    lambda x: x.view(torch.int32),
    lambda x: x.split(2, 1)[1],
    lambda x: x.detach(),
]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shares_its_memory(view: Any) -> None:
    base = sample(3, 4).to(DEVICE)
    there, expected = view(base), view(sample(3, 4))
    assert there.stride() == expected.stride()
    assert there.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert_same(there, expected)
    base.zero_()
    assert not there.cpu().any()


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "offset"])
def test_in_place_operators(layout: str) -> None:
    def change(x: torch.Tensor) -> torch.Tensor:
        x.add_(1).mul_(x)
        x[0] = 5
        x[1:, 2].neg_()
        x[torch.tensor([2], device=x.device)] += 3
        x.scatter_add_(1, torch.zeros(3, 2, dtype=torch.int64, device=x.device), x.clone())
        x.clamp_(max=9)
        return x

    compare(change, layouts(3, 4)[layout].clone(memory_format=torch.preserve_format))
    whole, expected = sample(6, 4).to(DEVICE), sample(6, 4)
    change(whole[1:4])
    change(expected[1:4])
    assert_same(whole, expected)


def test_out_arguments() -> None:
    x, y = sample(3, 4), sample(3, 4, seed=1)
    out = torch.empty(3, 4, device=DEVICE)
    result = torch.add(x.to(DEVICE), y.to(DEVICE), out=out)
    assert result is out
    assert_same(out, x + y)
    columns = torch.zeros(4, 6, device=DEVICE).t()[::2]
    torch.mul(x.to(DEVICE), y.to(DEVICE), out=columns)
    assert_same(columns, x * y)
    empty = torch.empty(0, device=DEVICE)
    assert_same(torch.exp(x.to(DEVICE), out=empty), x.exp())
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(x.to(DEVICE), 1, out=torch.empty(3, 4, dtype=torch.int64, device=DEVICE))
    with pytest.raises(RuntimeError, match="device"):
        torch.add(x.to(DEVICE), 1, out=torch.empty(3, 4))


PROMOTED = [
    dtype
    for dtype in DTYPES
    if computed_by_the_cpu(dtype) and (dtype.is_signed or dtype in (torch.bool, torch.uint8))
]


@pytest.mark.parametrize("left", PROMOTED, ids=str)
def test_types_are_promoted_as_on_the_cpu(left: torch.dtype) -> None:
    ones = torch.ones(3, dtype=left)
    for right in PROMOTED:
        compare(torch.add, ones, torch.ones(3, dtype=right))
    for number in (True, 2, 2.5):
        compare(torch.mul, ones, number)


def test_scalars_of_the_cpu_mix_with_tensors_of_the_device() -> None:
    x = sample(3, 4)
    there = x.to(DEVICE)
    scalar = torch.tensor(2.0)
    assert_same(there * scalar, x * scalar)
    assert_same(scalar - there, scalar - x)
    assert_same(torch.where(there > 0, there, scalar), torch.where(x > 0, x, scalar))
    assert_same(there.clone().add_(scalar), x + scalar)
    assert_same(there[torch.tensor(1)], x[1])


@pytest.mark.parametrize(
    "operator", [torch.add, torch.mm, torch.atan2], ids=lambda operator: operator.__name__
)
def test_tensors_of_two_devices_are_refused(operator: Any) -> None:
    x = torch.ones(2, 2, device=DEVICE)
    for first, second in ((x, torch.ones(2, 2)), (torch.ones(2, 2), x)):
        with pytest.raises(RuntimeError, match=r"same device|two devices|different device"):
            operator(first, second)


@needs_two_devices
def test_tensors_of_two_device_indices_are_refused() -> None:
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2, device=f"{DEVICE}:0") + torch.ones(2, device=f"{DEVICE}:1")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.view(5),
        lambda x: x + torch.ones(7, device=x.device),
        lambda x: x @ x,
        lambda x: x.sum(4),
        lambda x: x.expand(4, 4),
        lambda x: x.numpy(),
    ],
)
def test_wrong_arguments_raise_as_on_the_cpu(call: Any) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError)):
        call(torch.ones(3, 4, device=DEVICE))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, index: x[index],
        lambda x, index: x.gather(0, index),
        lambda x, index: x.index_select(0, index),
        lambda x, index: x.scatter(0, index, 1.0),
    ],
    ids=["index", "gather", "index_select", "scatter"],
)
def test_an_index_out_of_range_is_an_error(call: Any) -> None:
    """The call raises if the operator falls back; otherwise a later call raises."""
    if not (backend.get_device_properties(0).reports_errors or runs_on_cpu(call)):
        pytest.skip("the device does not check indices")
    with pytest.raises((IndexError, RuntimeError), match=r"out of bounds|out of range"):
        call(torch.ones(4, device=DEVICE), torch.tensor([1, 9], device=DEVICE)).cpu()
    assert_same(torch.ones(4, device=DEVICE) + 1, torch.full((4,), 2.0))


def runs_on_cpu(call: Any) -> bool:
    with backend.count_fallbacks() as fallbacks:
        call(torch.ones(4, device=DEVICE), torch.tensor([1, 2], device=DEVICE))
    return bool(fallbacks)


def test_a_tensor_prints_its_values_and_its_device() -> None:
    text = str(torch.tensor([1.5, -2], device=DEVICE))
    assert "1.5000" in text and f"device='{DEVICE}:0'" in text
    assert torch.tensor([3], device=DEVICE).item() == 3
    assert torch.tensor([[1, 2]], device=DEVICE).tolist() == [[1, 2]]
