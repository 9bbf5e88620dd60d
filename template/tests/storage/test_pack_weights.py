"""Weights in the device's preferred layout."""

from __future__ import annotations

import copy
import io
import re
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import has_function, needs, run_python, sample
from torch import nn

pytestmark = needs(torch.float32)
HAS_LAYOUTS = has_function("layouts", "preferred_layout")
needs_layouts = pytest.mark.skipif(not HAS_LAYOUTS, reason="the device has no layouts")
PLAIN = backend.StorageLayout()


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 65, bias=False))


@pytest.fixture
def model() -> nn.Module:
    """Return make_model() with packed weights; skip if the device packs nothing."""
    model = make_model().to(DEVICE)
    if backend.pack_weights(model) == 0:
        pytest.skip("the device prefers the plain layout for weights")
    return model


def packed_names(model: nn.Module) -> list[str]:
    return [
        name for name, value in model.named_parameters() if backend.storage_layout(value) != PLAIN
    ]


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_a_device_without_layouts_packs_nothing() -> None:
    model = make_model().to(DEVICE)
    count = backend.pack_weights(model)
    assert count == len(packed_names(model))
    assert HAS_LAYOUTS or count == 0
    assert backend.pack_weights(make_model()) == 0


def test_a_packed_model_gives_the_same_results(model: nn.Module) -> None:
    assert packed_names(model) == ["0.weight", "2.weight"]
    assert backend.pack_weights(model) == 0
    x = sample(5, 64)
    assert_same(model(x.to(DEVICE)), make_model()(x))
    with torch.inference_mode():
        assert_same(model.eval()(x.to(DEVICE)), make_model()(x))


def test_a_packed_model_has_gradients_and_optimizer_steps_are_refused(model: nn.Module) -> None:
    reference, x = make_model(), sample(5, 64)
    for one, value in ((model, x.to(DEVICE)), (reference, x)):
        one(value).square().mean().backward()
    for mine, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        assert_same(mine.grad, theirs.grad)
        assert backend.storage_layout(mine.grad) == PLAIN
    for optimizer in (torch.optim.SGD, torch.optim.AdamW):
        for keywords in ({}, {"foreach": False}, {"fused": True}):
            with pytest.raises(RuntimeError, match="has a private layout"):
                optimizer(model.parameters(), lr=0.1, **keywords).step()


def test_state_dicts_are_plain_and_loaded_weights_are_packed(model: nn.Module) -> None:
    reference = make_model()
    state = model.state_dict()
    for name, value in state.items():
        assert backend.storage_layout(value) == PLAIN
        assert torch.equal(value.cpu(), reference.state_dict()[name])
    other = {name: value + 1 for name, value in reference.state_dict().items()}
    for assign in (False, True):
        on_device = {name: value.to(DEVICE) for name, value in other.items()}
        model.load_state_dict(on_device if assign else other, assign=assign)
        assert packed_names(model) == ["0.weight", "2.weight"]
        for name, value in model.state_dict().items():
            assert torch.equal(value.cpu(), other[name])
    kept = model.state_dict(keep_vars=True)
    assert kept["0.weight"] is model.get_parameter("0.weight")


def test_copied_saved_and_moved_models_give_the_same_results(model: nn.Module) -> None:
    x = sample(5, 64)
    expected = make_model()(x)
    other = copy.deepcopy(model)
    assert packed_names(other) == ["0.weight", "2.weight"]
    assert_same(other(x.to(DEVICE)), expected)
    assert all(backend.storage_layout(value) == PLAIN for value in other.state_dict().values())
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    assert packed_names(loaded) == ["0.weight", "2.weight"]
    assert_same(loaded(x.to(DEVICE)), expected)
    assert torch.equal(copy.deepcopy(model).cpu()(x), expected)
    moved = copy.deepcopy(model).to(torch.bfloat16)
    assert packed_names(moved) == []
    assert moved.get_parameter("0.weight").dtype == torch.bfloat16


def test_a_model_moved_to_the_host_is_plain(model: nn.Module) -> None:
    on_host = model.cpu()
    x = sample(3, 64)
    assert torch.equal(on_host(x), make_model()(x))
    on_host.load_state_dict(make_model().state_dict())
    assert backend.pack_weights(on_host.to(DEVICE)) == 2


class Tied(nn.Module):
    """Two layers that share a weight."""

    def __init__(self, other: Any) -> None:
        super().__init__()
        self.first = nn.Linear(64, 96, bias=False)
        self.other = other
        self.other.weight = self.first.weight


@needs_layouts
def test_shared_weights_are_packed_only_if_all_owners_support_it() -> None:
    of_embedding = Tied(nn.Embedding(96, 64)).to(DEVICE)
    assert backend.pack_weights(of_embedding) == 0
    of_linear = Tied(nn.Linear(64, 96)).to(DEVICE)
    if backend.pack_weights(of_linear) == 1:
        assert of_linear.other.weight is of_linear.first.weight
        assert packed_names(of_linear) == ["first.weight"]

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Parameter(torch.ones(64, 64))

    assert backend.pack_weights(Odd().to(DEVICE)) == 0
    part = nn.Linear(64, 64, bias=False, device=DEVICE)
    part.weight.data = torch.ones(128, 64, device=DEVICE)[:64]
    assert backend.pack_weights(part) == 0


@needs_layouts
def test_packed_attention_and_convolutions_give_the_same_results() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    conv = nn.Sequential(nn.Conv2d(64, 64, 3), nn.ConvTranspose2d(64, 64, 2), nn.LazyLinear(3))
    x, image = sample(2, 6, 64), sample(1, 64, 6, 6)
    expected = layer(x)
    mine = copy.deepcopy(layer).to(DEVICE)
    backend.pack_weights(mine)
    assert_same(mine(x.to(DEVICE)), expected)
    assert_same(mine.eval()(x.to(DEVICE)), expected)
    on_device = copy.deepcopy(conv).to(DEVICE)
    backend.pack_weights(on_device)
    assert_same(on_device[:2](image.to(DEVICE)), conv[:2](image))


@needs_layouts
def test_a_product_is_launched_with_the_packed_layout() -> None:
    code = f"""
        import torch
        weight = torch.randn(65, 64, device="{DEVICE}")
        backend = torch.get_device_module("{DEVICE}")
        format_, numbers = backend._C.preferred_layout(weight, False)
        packed = backend.to_format(weight, format_, *numbers)
        torch.nn.functional.linear(torch.ones(2, 64, device="{DEVICE}"), packed)
    """
    said = run_python(code, {f"{ENV_PREFIX}_TRACE": "launches"}).stderr
    (product,) = (line for line in said.splitlines() if "matmul(" in line)
    assert re.search(r"layout_b: format \d+", product), product
