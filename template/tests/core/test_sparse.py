"""Sparse tensors (COO and compressed ones) on the device behave as on the CPU."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from core.sparse_tensors import (
    COLUMNS,
    FULL,
    MADE,
    PLACES,
    PRODUCTS,
    ROWS,
    SHAPES,
    SUMS,
    TALL,
    Function,
    compare,
    duplicated,
)
from support import names, natively, needs, needs_two_devices, sample, supported

pytestmark = [
    needs(torch.float32, torch.int64),
    pytest.mark.filterwarnings("ignore:Sparse"),
]

ELEMENTWISE = names(
    """
    abs asin asinh atan ceil deg2rad erf expm1 floor frac isinf isnan log1p neg rad2deg relu
    round sgn sign signbit sin sinh sqrt tan tanh trunc isneginf isposinf
    """
)


REFUSALS = (RuntimeError, NotImplementedError, IndexError)


def check(function: Function, made: torch.Tensor) -> None:
    """Compare results. If the CPU lacks the function for this layout, the device refuses it too, or
    computes as for a dense tensor.
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
    nowhere = torch.zeros(0, 3, dtype=torch.int64)
    check(SHAPES["to_dense"], torch.sparse_coo_tensor(nowhere, torch.ones(3, 2).to(dtype), (2,)))
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
def test_these_operators_do_not_fall_back(kind: str, name: str) -> None:
    made = MADE[kind]().to(DEVICE)
    with natively():
        {**SHAPES, **SUMS, **PRODUCTS}[name](made)


@pytest.mark.parametrize("kind", MADE)
def test_sparse_tensors_can_be_saved_and_copied(kind: str) -> None:
    made = MADE[kind]()
    tensor = made.to(DEVICE)
    compare(copy.deepcopy(tensor), made)
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    compare(torch.load(file), made)
    file.seek(0)
    torch.testing.assert_close(torch.load(file, map_location="cpu"), made)
    places = []

    def keep(storage: Any, place: str) -> Any:
        places.append(place)
        return storage

    for saved in (tensor, tensor.detach().requires_grad_(tensor.is_floating_point())):
        file = io.BytesIO()
        torch.save(saved, file)
        file.seek(0)
        loaded = torch.load(file, map_location=keep)
        torch.testing.assert_close(loaded.detach(), made)
        assert loaded.requires_grad == saved.requires_grad
    assert f"{DEVICE}:0" in places


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
    unsorted = torch.tensor([[1, 0]], device=DEVICE)
    checked = {"check_invariants": True, "is_coalesced": True}
    with pytest.raises(RuntimeError, match="uncoalesced"):
        torch.sparse_coo_tensor(unsorted, torch.ones(2), (2,), device=DEVICE, **checked)
    sorted_ = torch.sparse_coo_tensor(
        unsorted.flip(1), torch.ones(2), (2,), device=DEVICE, **checked
    )
    assert sorted_.is_coalesced()
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


def test_unsupported_operators_raise_an_error() -> None:
    for function in (torch.exp, torch.amax, lambda s: s > 0):
        with pytest.raises(
            NotImplementedError, match=rf"no kernel for sparse tensors of {DEVICE}.*to_dense"
        ):
            function(MADE["coalesced"]().to(DEVICE))


def test_many_elements_of_one_row() -> None:
    count = 40_000
    places = torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(count)])
    made = torch.sparse_coo_tensor(places, sample(count), (2, count))
    dense = sample(count, 100, seed=3)
    result = made.to(DEVICE) @ dense.to(DEVICE)
    expected = made.double() @ dense.double()
    torch.testing.assert_close(result.cpu().double(), expected, rtol=1e-3, atol=1e-2)
