"""embedding_bag against the CPU, without fallbacks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from core.comparisons import close
from support import assert_same, needs, sample, supported
from torch.nn.functional import embedding_bag

pytestmark = [needs(torch.float32), pytest.mark.usefixtures("everything_is_native")]

INDICES = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9, 2])
OFFSETS = torch.tensor([0, 4, 4, 7])
"""The second bag is empty."""


def run(device: str, options: dict[str, Any], dtype: torch.dtype = torch.float32) -> list[Any]:
    """Return the result, and the gradients of the table and of the samples' weights."""
    table = sample(10, 3, dtype=dtype).to(device).requires_grad_()
    tensors = {
        key: value.to(device) for key, value in options.items() if isinstance(value, torch.Tensor)
    }
    others = {key: value for key, value in options.items() if key not in tensors}
    if "per_sample_weights" in tensors:
        tensors["per_sample_weights"] = tensors["per_sample_weights"].to(dtype).requires_grad_()
    result = embedding_bag(tensors.pop("input"), table, **tensors, **others)
    result.backward(sample(*result.shape, dtype=dtype, seed=1).to(device))
    weights = tensors.get("per_sample_weights")
    return [result.detach(), table.grad, None if weights is None else weights.grad]


CASES: dict[str, dict[str, Any]] = {
    "bags": {"input": INDICES, "offsets": OFFSETS},
    "int32": {"input": INDICES.int(), "offsets": OFFSETS.int()},
    "mixed types": {"input": INDICES, "offsets": OFFSETS.int()},
    "padding from the end": {"input": INDICES, "offsets": OFFSETS, "padding_idx": -8},
    "nothing": {"input": INDICES[:0], "offsets": OFFSETS[:2] * 0},
}


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("case", CASES)
def test_bags_and_their_gradients(case: str, mode: str) -> None:
    options = {**CASES[case], "mode": mode}
    for actual, expected in zip(run(DEVICE, options)[:2], run("cpu", options)[:2], strict=True):
        assert_same(actual, expected)


def test_gradients_scaled_by_frequency() -> None:
    """The reference is computed here, because the CPU divides by the counts of wrong indices."""
    counts = INDICES.bincount(minlength=10).clamp(min=1).unsqueeze(1)
    for mode in ("sum", "mean"):
        options = {**CASES["bags"], "mode": mode}
        scaled = run(DEVICE, {**options, "scale_grad_by_freq": True})[1]
        assert_same(scaled, run("cpu", options)[1] / counts)


def test_narrow_types_are_summed_in_float32() -> None:
    for dtype in supported(torch.float16, torch.bfloat16):
        indices = torch.zeros(3000, dtype=torch.int64)
        table = torch.full((1, 2), 0.37, dtype=dtype)
        actual = embedding_bag(indices.to(DEVICE).view(1, -1), table.to(DEVICE), mode="sum")
        assert_same(actual, (table.double() * 3000).to(dtype), **close(dtype))


def test_the_maximum_of_a_table_without_columns_is_empty() -> None:
    indices = torch.tensor([[0, 1]], device=DEVICE)
    result = embedding_bag(indices, torch.empty(5, 0, device=DEVICE), mode="max")
    assert result.shape == (1, 0)


def test_the_maximum_of_nan_is_nan() -> None:
    table = torch.tensor([[1.0, float("nan")], [float("nan"), 2.0]])
    indices = torch.tensor([[0, 1]])
    actual = embedding_bag(indices.to(DEVICE), table.to(DEVICE), mode="max")
    assert actual.isnan().all()
