"""Gradients through sparse tensors, and training with sparse gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from core.sparse_tensors import (
    MADE,
    PRODUCTS,
    SHAPES,
    SUMS,
    TALL,
    compare,
    thin,
)
from support import natively, needs

pytestmark = [
    needs(torch.float32, torch.int64),
    pytest.mark.filterwarnings("ignore:Sparse"),
]


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
