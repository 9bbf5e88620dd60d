"""Sparse tensors (COO, CSR and its kin) are held by the device, and act as those of the CPU."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import natively, needs, needs_two_devices, sample, supported

pytestmark = [
    needs(torch.float32, torch.int64),
    pytest.mark.filterwarnings("ignore:Sparse"),
]

Function = Callable[[torch.Tensor], Any]

ROWS, COLUMNS = 4, 5
PLACES = torch.tensor([[0, 2, 2, 0, 3], [1, 0, 3, 1, 4]])


def thin(dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Return a dense matrix of which many elements are zero."""
    values = sample(ROWS, COLUMNS, dtype=dtype, seed=seed)
    return values.masked_fill(sample(ROWS, COLUMNS, seed=seed + 1) < 1, 0)


def duplicated(*dense: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor with two elements at one place."""
    values = sample(PLACES.shape[1], *dense, dtype=dtype)
    return torch.sparse_coo_tensor(PLACES, values, (ROWS, COLUMNS, *dense))


MADE: dict[str, Callable[[], torch.Tensor]] = {
    "coalesced": lambda: thin().to_sparse(),
    "duplicated": duplicated,
    "hybrid": lambda: duplicated(3),
    "empty": lambda: torch.sparse_coo_tensor(size=(ROWS, COLUMNS)),
    "int64": lambda: thin(torch.int64).to_sparse(),
    "csr": lambda: thin().to_sparse_csr(),
    "csc": lambda: thin().to_sparse_csc(),
    "bsr": lambda: thin().to_sparse_bsr((2, 1)),
    "bsc": lambda: thin().to_sparse_bsc((2, 1)),
    "empty csr": lambda: torch.zeros(ROWS, COLUMNS).to_sparse_csr(),
}
"""Sparse tensors of the CPU."""

TALL = sample(COLUMNS, 3, seed=5)
FULL = sample(ROWS, COLUMNS, seed=6)


def here(tensor: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
    """Return ``tensor`` on the device and in the type of ``beside``."""
    return tensor.to(beside.device, beside.dtype)


SHAPES: dict[str, Function] = {
    "to_dense": lambda s: s.to_dense(),
    "to_sparse": lambda s: s.to_sparse(),
    "to_sparse_csr": lambda s: s.to_sparse_csr(),
    "to_sparse_csc": lambda s: s.to_sparse_csc(),
    "to_sparse_bsr": lambda s: s.to_sparse_bsr((2, 1)),
    "clone": lambda s: s.clone(),
    "copy_": lambda s: torch.zeros_like(s).copy_(s),
    "zero_": lambda s: s.clone().zero_(),
    "to": lambda s: s.to(torch.float32),
    "t": lambda s: s.t(),
    "select": lambda s: s[1],
    "cat": lambda s: torch.cat([s, s]),
    "index_select": lambda s: s.index_select(0, torch.tensor([2, 0], device=s.device)),
    "dimensions": lambda s: (s.sparse_dim(), s.dense_dim(), s._nnz()),
    "sparse_mask": lambda s: here(FULL, s).sparse_mask(s),
}
"""What rearranges a sparse tensor."""

SUMS: dict[str, Function] = {
    "coalesce": lambda s: s.coalesce(),
    "add": lambda s: s + s,
    "add_": lambda s: s.clone().add_(s),
    "sub": lambda s: s - s * 3,
    "alpha": lambda s: torch.add(s, s, alpha=-2),
    "fractional alpha in place": lambda s: s.clone().add_(s, alpha=1.5),
    "add to dense": lambda s: here(FULL, s) + s,
    "add to dense in place": lambda s: here(FULL, s).clone().add_(s, alpha=3),
    "out": lambda s: torch.add(s, s, out=torch.zeros_like(s)),
    "sum": lambda s: s.sum(),
    "sparse.sum": lambda s: torch.sparse.sum(s, 0),
    "sum of rows": lambda s: s.sum(1, keepdim=True),
    "norm": lambda s: s.norm(),
}

PRODUCTS: dict[str, Function] = {
    "by a number": lambda s: s * 3,
    "by a CPU tensor": lambda s: s * torch.tensor(2, dtype=s.dtype),
    "by a 0-dim tensor": lambda s: s * torch.tensor(2, dtype=s.dtype, device=s.device),
    "in place": lambda s: s.clone().mul_(2),
    "by itself": lambda s: s * s,
    "by another": lambda s: s * s.clone().abs_(),
    "by a dense one": lambda s: s * here(FULL, s),
    "divided": lambda s: s / 2,
    "pow": lambda s: s**2,
    "mm": lambda s: torch.mm(s, here(TALL, s)),
    "sparse.mm": lambda s: torch.sparse.mm(s, here(TALL, s)),
    "from the left": lambda s: here(TALL, s).t() @ s.t(),
    "mv": lambda s: s @ here(TALL, s)[:, 0],
    "addmm": lambda s: torch.addmm(here(TALL, s)[:4], s, here(TALL, s), beta=2, alpha=3),
    "addmm of a row": lambda s: torch.addmm(here(TALL, s)[0], s, here(TALL, s)),
    "linear": lambda s: torch.nn.functional.linear(here(TALL, s).t(), s),
    "of two": lambda s: torch.sparse.mm(s, s.t()),
}

ELEMENTWISE = [
    "abs",
    "asin",
    "asinh",
    "atan",
    "ceil",
    "deg2rad",
    "erf",
    "expm1",
    "floor",
    "frac",
    "isinf",
    "isnan",
    "log1p",
    "neg",
    "rad2deg",
    "relu",
    "round",
    "sgn",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "isneginf",
    "isposinf",
]


def compare(actual: Any, expected: Any) -> None:
    """Compare a result of the device with one of the CPU; the order of equal places may differ."""
    if not isinstance(expected, torch.Tensor):
        assert actual == expected
        return
    assert actual.device.type == DEVICE
    assert (actual.layout, actual.dtype) == (expected.layout, expected.dtype)
    assert actual.shape == expected.shape
    if expected.layout is torch.sparse_coo:
        assert actual.sparse_dim() == expected.sparse_dim()
        actual, expected = actual.cpu().coalesce(), expected.coalesce()
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)


REFUSALS = (RuntimeError, NotImplementedError, IndexError)


def check(function: Function, made: torch.Tensor) -> None:
    """Compare results. What the CPU has not for this layout, the device refuses too, or computes as
    for a dense tensor.
    """
    try:
        expected = function(made)
    except REFUSALS:
        try:
            actual = function(made.to(DEVICE))
        except REFUSALS:
            return
        torch.testing.assert_close(actual.to_dense().cpu(), function(made.to_dense()))
    else:
        compare(function(made.to(DEVICE)), expected)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_layouts(name: str, kind: str) -> None:
    made = MADE[kind]()
    if name == "sparse_mask" and kind == "duplicated":
        made = made.coalesce()
    check(SHAPES[name], made)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str, kind: str) -> None:
    check(SUMS[name], MADE[kind]())


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, kind: str) -> None:
    check(PRODUCTS[name], MADE[kind]())


@pytest.mark.parametrize("kind", ["coalesced", "duplicated", "int64", "csr", "csc", "bsr"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, kind: str) -> None:
    made = MADE[kind]()
    check(lambda s: getattr(torch, name)(s), made)
    if hasattr(torch, f"{name}_") and made.is_floating_point():
        check(lambda s: getattr(torch, f"{name}_")(s.clone()), made)
        if name != "relu":
            check(lambda s: getattr(torch, name)(s, out=torch.zeros_like(s)), made)


@pytest.mark.parametrize(
    "dtype", supported(torch.float16, torch.bfloat16, torch.float64, torch.bool)
)
def test_other_types(dtype: torch.dtype) -> None:
    made = duplicated(dtype=dtype)
    for name in ("coalesce", "add"):
        check(SUMS[name], made)
    check(SHAPES["to_dense"], made)
    if dtype is not torch.bool:
        result = made.to(DEVICE) @ TALL.to(DEVICE, dtype)
        expected = made.to(torch.float32) @ TALL.to(dtype).float()
        torch.testing.assert_close(result.cpu(), expected.to(dtype), rtol=2e-2, atol=2e-2)


ON_THE_DEVICE = ["add", "add to dense", "by itself", "by a dense one", "mm", "mv", "to_dense"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in ("coalesced", "duplicated", "csr") for name in ON_THE_DEVICE]
    + [("duplicated", "coalesce")],
)
def test_these_run_on_the_device(kind: str, name: str) -> None:
    made = MADE[kind]().to(DEVICE)
    with natively():
        {**SHAPES, **SUMS, **PRODUCTS}[name](made)


@pytest.mark.parametrize(
    "name", ["to_dense", "add", "sum", "by itself", "sparse.mm", "by a number", "linear"]
)
@pytest.mark.parametrize("kind", ["coalesced", "duplicated", "csr"])
def test_gradients(kind: str, name: str) -> None:
    function = {**SHAPES, **SUMS, **PRODUCTS}[name]
    gradients = []
    for device in ("cpu", DEVICE):
        leaf = MADE[kind]().to(device).requires_grad_()
        result = function(leaf)
        dense = result.to_dense() if result.layout is not torch.strided else result
        dense.sum().backward()
        gradients.append(leaf.grad)
    compare(gradients[1], gradients[0])


@pytest.mark.parametrize("reduction", ["sum", "mean", "amax", "amin"])
def test_gradients_of_reduced_products(reduction: str) -> None:
    for wanted in ((True, True), (True, False), (False, True)):
        gradients = []
        for device in ("cpu", DEVICE):
            rows = thin().to_sparse_csr().to(device).requires_grad_(wanted[0])
            factor = TALL.to(device, copy=True).requires_grad_(wanted[1])
            torch.sparse.mm(rows, factor, reduction).square().sum().backward()
            gradients.append([leaf.grad for leaf in (rows, factor) if leaf.requires_grad])
        for actual, expected in zip(gradients[1], gradients[0], strict=True):
            compare(actual, expected)


def test_gradients_reach_the_dense_factor() -> None:
    gradients = []
    for device in ("cpu", DEVICE):
        factor = TALL.to(device, copy=True).requires_grad_()
        torch.sparse.mm(thin().to_sparse().to(device), factor).square().sum().backward()
        gradients.append(factor.grad)
    compare(gradients[1], gradients[0])


def train(device: str, optimizer: type[torch.optim.Optimizer], **options: Any) -> torch.Tensor:
    torch.manual_seed(0)
    table = torch.nn.Embedding(7, 3, sparse=True)
    bags = torch.nn.EmbeddingBag(7, 3, mode="sum", sparse=True)
    model = torch.nn.ModuleList([table, bags]).to(device)
    steps = optimizer(model.parameters(), **options)
    words = torch.tensor([[1, 2, 2], [6, 0, 1]], device=device)
    for _ in range(3):
        steps.zero_grad()
        loss = (table(words).sum(1) + bags(words)).square().sum()
        loss.backward()
        steps.step()
    return torch.cat([table.weight, bags.weight]).detach()


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SparseAdam, {"lr": 0.1}),
        (torch.optim.SGD, {"lr": 0.05}),
        (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
        (torch.optim.Adagrad, {"lr": 0.1}),
    ],
)
def test_embeddings_with_sparse_gradients_train(optimizer: Any, options: dict[str, float]) -> None:
    with natively():
        actual = train(DEVICE, optimizer, **options)
    torch.testing.assert_close(actual.cpu(), train("cpu", optimizer, **options))


def test_sparse_gradients_accumulate() -> None:
    results = []
    for device in ("cpu", DEVICE):
        table = torch.nn.Embedding.from_pretrained(TALL.clone(), freeze=False, sparse=True).to(
            device
        )
        for words in ([1, 1, 3], [0, 3]):
            table(torch.tensor(words, device=device)).sum().backward()
        assert table.weight.grad is not None
        results.append(table.weight.grad)
    compare(results[1], results[0])


@pytest.mark.parametrize("kind", MADE)
def test_saved_and_copied(kind: str) -> None:
    made = MADE[kind]()
    tensor = made.to(DEVICE)
    compare(copy.deepcopy(tensor), made)
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    compare(torch.load(file), made)
    file.seek(0)
    torch.testing.assert_close(torch.load(file, map_location="cpu"), made)


@needs_two_devices
@pytest.mark.parametrize("kind", MADE)
def test_on_the_other_device(kind: str) -> None:
    made = MADE[kind]()
    other = torch.device(DEVICE, 1)
    assert backend.current_device() == 0
    tensor = made.to(DEVICE).to(other)
    assert tensor.device == other
    for result in (tensor + tensor, tensor * 2, torch.zeros_like(tensor)):
        assert result.device == other
        assert result.to_dense().device == other
    compare(tensor + tensor, made + made)
    with pytest.raises(RuntimeError, match="same device"):
        tensor + made.to(DEVICE)


def test_made_on_the_device() -> None:
    values = sample(PLACES.shape[1])
    tensor = torch.sparse_coo_tensor(PLACES, values, (ROWS, COLUMNS), device=DEVICE)
    assert f"device='{DEVICE}:0'" in repr(tensor)
    assert tensor._values().device.type == DEVICE
    compare(tensor, torch.sparse_coo_tensor(PLACES, values, (ROWS, COLUMNS)))
    csr = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2]), torch.tensor([1, 0]), values[:2], (2, 2), device=DEVICE
    )
    compare(csr, torch.tensor([[0, values[0]], [values[1], 0]]).to_sparse_csr())
    assert torch.empty(2, layout=torch.sparse_coo, device=DEVICE)._nnz() == 0
    assert torch.zeros_like(torch.eye(2).to_sparse(), device=DEVICE).device.type == DEVICE


def test_wrong_indices_are_refused() -> None:
    outside = torch.tensor([[0, ROWS]])
    with pytest.raises(RuntimeError, match="size is inconsistent"):
        torch.sparse_coo_tensor(
            outside, torch.ones(2), (ROWS,), device=DEVICE, check_invariants=True
        )
    with pytest.raises(RuntimeError, match="col_indices"):
        torch.sparse_csr_tensor(
            torch.tensor([0, 1]),
            torch.tensor([9]),
            torch.ones(1),
            (1, 2),
            device=DEVICE,
            check_invariants=True,
        )


def test_mixed_devices_are_refused() -> None:
    made = MADE["coalesced"]()
    for use in (
        lambda: made.to(DEVICE) + made,
        lambda: FULL.to(DEVICE) + made,
        lambda: made @ TALL.to(DEVICE),
        lambda: made.to(DEVICE) @ TALL,
    ):
        with pytest.raises(RuntimeError, match="same device"):
            use()


def test_what_sparse_tensors_lack_says_so() -> None:
    for function in (torch.exp, torch.amax, lambda s: s > 0):
        with pytest.raises(
            NotImplementedError, match=rf"no kernel for sparse tensors of {DEVICE}.*to_dense"
        ):
            function(MADE["coalesced"]().to(DEVICE))


def test_many_elements_of_one_row() -> None:
    count = 40_000
    places = torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(count)])
    made = torch.sparse_coo_tensor(places, sample(count), (2, count))
    dense = sample(count, 600, seed=3)
    result = made.to(DEVICE) @ dense.to(DEVICE)
    expected = made.double() @ dense.double()
    torch.testing.assert_close(result.cpu().double(), expected, rtol=1e-3, atol=1e-2)
