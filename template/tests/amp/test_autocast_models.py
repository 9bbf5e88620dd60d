"""The GPT of examples/ trains natively under autocast, with float16's gradients scaled."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import example, natively, needs


@pytest.mark.parametrize(
    "amp",
    [
        pytest.param("bf16", marks=needs(torch.float32, torch.bfloat16)),
        # The scaler counts its steps in int32.
        pytest.param("fp16", marks=needs(torch.float32, torch.int32, torch.float16)),
    ],
)
def test_gpt_trains_under_autocast_without_falling_back(amp: str) -> None:
    module = example("gpt")
    with natively():
        actual = module.train(DEVICE, 20, amp)
    expected = module.train("cpu", 20, amp)
    # The CPU rounds at other operators: its autocast lists differ.
    assert actual == pytest.approx(expected, rel=0.02)
    assert actual[-1] < 0.8 * actual[0]
