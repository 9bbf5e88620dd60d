"""The models of examples/ train without fallbacks, with the losses of the CPU."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import example, natively, needs

pytestmark = needs(torch.float32)


@pytest.mark.parametrize("name", ["gpt", "resnet", "lstm", "unet", "moe", "speech"])
def test_model_trains_as_on_the_cpu_without_falling_back(name: str) -> None:
    module = example(name)
    with natively():
        actual = module.train(DEVICE, 20)
    expected = module.train("cpu", 20)
    assert len(actual) == 20
    assert actual == pytest.approx(expected, rel=1e-4)
    assert actual[-1] < 0.95 * actual[0]
