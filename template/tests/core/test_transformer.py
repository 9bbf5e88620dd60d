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
# On the CPU an encoder converts padded inputs to nested tensors, and warns.
@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
def test_encoder(activation: str, norm_first: bool, padded: bool) -> None:
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, activation=activation, norm_first=norm_first, batch_first=True
    )
    values = sample(2, 5, 8, low=-1, high=1)
    options = {"src_key_padding_mask": PADDING} if padded else {}
    actual, expected = both(nn.TransformerEncoder(layer, 2), values, **options)
    # Results at padded positions are arbitrary.
    kept = PADDING.logical_not() if padded else torch.ones_like(PADDING)
    assert_same(actual[kept.to(DEVICE)], expected[kept], rtol=1e-4, atol=1e-5)


def test_nested_tensors_are_refused_in_one_sentence() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, mask_check=False).to(DEVICE).eval()
    with (
        torch.inference_mode(),
        pytest.raises(NotImplementedError, match="enable_nested_tensor=False"),
    ):
        encoder(sample(2, 5, 8).to(DEVICE), src_key_padding_mask=PADDING.to(DEVICE))
