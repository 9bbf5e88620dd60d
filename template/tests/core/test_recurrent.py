"""LSTM, GRU and plain recurrent networks against the CPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import natively, needs, sample
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

pytestmark = needs(torch.float32, torch.int64)

LAYERS: list[tuple[str, Any, dict[str, Any]]] = [
    ("lstm", nn.LSTM, {}),
    ("lstm_deep", nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    ("lstm_batch_first", nn.LSTM, {"batch_first": True}),
    ("lstm_without_bias", nn.LSTM, {"bias": False}),
    ("lstm_projected", nn.LSTM, {"proj_size": 2}),
    ("gru", nn.GRU, {}),
    ("gru_deep", nn.GRU, {"num_layers": 2, "bidirectional": True}),
    ("gru_without_bias", nn.GRU, {"bias": False}),
    ("rnn", nn.RNN, {"nonlinearity": "relu"}),
]
LENGTHS = [5, 3, 3, 1]


def run(layer: nn.Module, values: torch.Tensor, packed: bool) -> list[torch.Tensor]:
    """Return the output, the last state and all gradients."""
    leaf = values.detach().requires_grad_()
    given: Any = leaf
    if packed:
        given = pack_padded_sequence(leaf, torch.tensor(LENGTHS), batch_first=layer.batch_first)
    output, state = layer(given)
    if packed:
        output, lengths = pad_packed_sequence(output, batch_first=bool(layer.batch_first))
        assert lengths.tolist() == LENGTHS
    states = list(state) if isinstance(state, tuple) else [state]
    sum((part * part).sum() for part in (output, *states)).backward()
    assert leaf.grad is not None
    gradients = [item.grad for item in layer.parameters() if item.grad is not None]
    return [output.detach(), *(part.detach() for part in states), leaf.grad, *gradients]


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize(("name", "kind", "options"), LAYERS, ids=[name for name, *_ in LAYERS])
def test_layer_trains_as_on_the_cpu_without_falling_back(
    name: str, kind: Any, options: dict[str, Any], packed: bool
) -> None:
    layer = kind(3, 4, **options)
    values = sample(4, 5, 3) if layer.batch_first else sample(5, 4, 3)
    expected = run(copy.deepcopy(layer), values, packed)
    moved = layer.to(DEVICE)
    with natively():
        actual = run(moved, values.to(DEVICE), packed)
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cell_has_second_gradients(kind: Any) -> None:
    def second(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        cell = kind(3, 4).to(device)
        values = sample(2, 3).to(device).requires_grad_()
        result = cell(values)
        result = result[0] if isinstance(result, tuple) else result
        (first,) = torch.autograd.grad((result * result).sum(), values, create_graph=True)
        (more,) = torch.autograd.grad((first * first).sum(), values)
        return [result.detach().cpu(), first.detach().cpu(), more.cpu()]

    for mine, theirs in zip(second(DEVICE), second("cpu"), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
