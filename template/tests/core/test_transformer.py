"""nn.MultiheadAttention and nn.TransformerEncoder in inference, which has its own operators."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, natively, needs, sample
from torch import nn

pytestmark = needs(torch.float32)

PADDING = torch.tensor([[False, False, False, True, True], [False] * 5])
# PyTorch warns that nested tensors are a prototype.
WARNS = pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
FUTURE = torch.ones(5, 5, dtype=torch.bool).triu(1)


def both(layer: nn.Module, *inputs: torch.Tensor, **options: Any) -> tuple[Any, Any]:
    """Return the layer's inference results on the device, without fallbacks, and on the CPU."""
    layer.eval()
    moved = copy.deepcopy(layer).to(DEVICE)
    there = {
        key: value.to(DEVICE) if isinstance(value, torch.Tensor) else value
        for key, value in options.items()
    }
    with torch.inference_mode():
        expected = layer(*inputs, **options)
        with natively():
            actual = moved(*(value.to(DEVICE) for value in inputs), **there)
    return actual, expected


@pytest.mark.parametrize("masks", [(), ("padding",), ("future",), ("padding", "future")], ids=str)
@pytest.mark.parametrize("weights", ["none", "mean", "each"])
def test_attention(masks: tuple[str, ...], weights: str) -> None:
    values = sample(2, 5, 8, low=-1, high=1)
    actual, expected = both(
        nn.MultiheadAttention(8, 2, batch_first=True),
        *(values, values, values) if weights == "none" else (values, values.flip(1), values + 1),
        key_padding_mask=PADDING if "padding" in masks else None,
        attn_mask=FUTURE if "future" in masks else None,
        need_weights=weights != "none",
        average_attn_weights=weights == "mean",
    )
    assert_same(actual[0], expected[0], rtol=1e-4, atol=1e-5)
    if weights == "none":
        assert actual[1] is None
    else:
        assert_same(actual[1], expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mask_check", [False, True])
@WARNS
def test_encoder(activation: str, norm_first: bool, padded: bool, mask_check: bool) -> None:
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, activation=activation, norm_first=norm_first, batch_first=True
    )
    values = sample(2, 5, 8, low=-1, high=1)
    options = {"src_key_padding_mask": PADDING} if padded else {}
    encoder = nn.TransformerEncoder(layer, 2, mask_check=mask_check)
    actual, expected = both(encoder, values, **options)
    assert_same(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", [None, "mean", "each"])
@WARNS
def test_nested_tensors(weights: str | None) -> None:
    parts = [sample(rows, 8, low=-1, high=1) for rows in (3, 5)]
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    results = []
    for device in ("cpu", DEVICE):
        nested = torch.nested.nested_tensor([part.to(device) for part in parts])
        options = {"need_weights": weights is not None, "average_attn_weights": weights == "mean"}
        with torch.inference_mode():
            seen, shares = attention.to(device)(nested, nested, nested, **options)
            results.append([*seen.unbind(), *layer.to(device)(nested).unbind()])
            results[-1] += [] if shares is None else [shares]
    for expected, actual in zip(*results, strict=True):
        assert_same(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", DEVICE])
@WARNS
def test_a_mask_with_gaps(device: str) -> None:
    values = sample(2, 4, 8).to(device)
    mask = torch.tensor([[True, False, True, False], [True] * 4], device=device)
    assert not torch._nested_tensor_from_mask_left_aligned(values, mask)
    with pytest.raises(RuntimeError, match="left-aligned without gaps"):
        torch._nested_tensor_from_mask(values, mask)
