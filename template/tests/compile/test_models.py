"""Compiled and eager models are equal: results, gradients, dropout and running statistics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from compile.programs import MODELS, assert_same
from support import example
from torch import Tensor, nn


@pytest.mark.parametrize(
    "mode", ["reduce-overhead", pytest.param("default", marks=pytest.mark.full)]
)
@pytest.mark.parametrize("make", MODELS)
def test_compiled_models_train_as_eager_models(
    make: Callable[[], tuple[nn.Module, Tensor]], mode: str
) -> None:
    assert_same({"mode": mode}, make)


@pytest.mark.full
@pytest.mark.parametrize(
    "how",
    [
        {"backend": "eager"},
        {"backend": "aot_eager"},
        {"mode": "max-autotune"},
        {"mode": "max-autotune-no-cudagraphs"},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", MODELS)
def test_other_compile_backends_and_modes_train_as_eager_models(
    make: Callable[[], tuple[nn.Module, Tensor]], how: dict[str, Any]
) -> None:
    assert_same(how, make)


# Without attention: with dynamic sizes it is composed of operators that draw other numbers.
@pytest.mark.full
@pytest.mark.parametrize("make", MODELS[:3])
def test_models_with_dynamic_sizes_train_as_eager_models(
    make: Callable[[], tuple[nn.Module, Tensor]],
) -> None:
    assert_same({"dynamic": True}, make)


@pytest.mark.full
@pytest.mark.parametrize("name", ["GPT", "resnet", "UNet"])
def test_compiled_examples_train_as_eager_models(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example(name.lower())
    expected = module.train(DEVICE, STEPS)
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Dynamo looks it up by name.
    make = getattr(module, name)
    monkeypatch.setattr(module, name, lambda: torch.compile(make()))
    torch.testing.assert_close(module.train(DEVICE, STEPS), expected, rtol=1e-3, atol=1e-3)


STEPS = 6


@pytest.mark.full
@pytest.mark.parametrize("make", MODELS)
def test_the_operators_compiler_trains_as_eager_models(
    make: Callable[[], tuple[nn.Module, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}_COMPILER", "operators")
    torch._dynamo.reset()  # drops the code of another compiler
    assert_same({}, make)
