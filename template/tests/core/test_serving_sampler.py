"""The sampler of serving engines: the tokens that it may draw, and errors."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, sample

serving: Any = importlib.import_module(f"{backend.__name__}.serving")

pytestmark = [needs(torch.float32, torch.int32, torch.int64)]
native = pytest.mark.usefixtures("everything_is_native")


def column(number: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((300,), number, dtype=dtype)


RESTRICTIONS: dict[str, tuple[dict[str, torch.Tensor], int]] = {
    "all": ({}, 8),
    "top_k": ({"top_k": column(3, torch.int32)}, 3),
    "top_p": ({"top_p": column(0.55)}, 2),
    "min_p": ({"min_p": column(0.3)}, 2),
    "greedy": ({"temperature": column(0)}, 1),
    "together": (
        {"top_k": column(3, torch.int64), "top_p": column(0.9), "temperature": column(2)},
        3,
    ),
}
PROBABILITIES = torch.tensor([0.05, 0.4, 0.05, 0.2, 0.1, 0.1, 0.05, 0.05])


@pytest.mark.parametrize("name", RESTRICTIONS)
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_sampled_tokens_satisfy_the_restrictions(device: str, name: str) -> None:
    given, count = RESTRICTIONS[name]
    options = {key: value.to(device) for key, value in given.items()}
    logits = PROBABILITIES.log().repeat(300, 1).to(device)
    drawn = serving.top_k_top_p_sample(logits, **options)
    assert drawn.dtype == torch.int64
    # top_k keeps all tokens with equal probabilities.
    most = (
        {1, 3, 4, 5} if count == 3 else set(PROBABILITIES.argsort(descending=True)[:count].tolist())
    )
    assert set(drawn.cpu().tolist()) == most


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_top_k_values_beyond_32_bits(device: str) -> None:
    logits = PROBABILITIES.log().repeat(300, 1).to(device)
    for count in (2**32 + 1, 1 - 2**32):
        top_k = torch.full((300,), count, device=device)
        assert len(set(serving.top_k_top_p_sample(logits, top_k).tolist())) == 8


def test_restrictions_of_wrong_sizes_are_refused() -> None:
    logits = torch.zeros(3, 8, device=DEVICE)
    for name, wrong in (("top_k", column(3)), ("top_p", column(0.5)), ("min_p", column(0.5)[:2])):
        with pytest.raises(RuntimeError, match=f"expected {name} to be"):
            serving.top_k_top_p_sample(logits, **{name: wrong.to(DEVICE)})


@native
@pytest.mark.skipif(
    not hasattr(backend, "default_generators"), reason="generated without generators of the device"
)
def test_a_seed_determines_the_samples() -> None:
    logits = sample(6, 100, dtype=torch.float32, low=-3, high=3).to(DEVICE)
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append([serving.top_k_top_p_sample(logits).tolist() for _ in range(3)])
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_fake_tensors_have_the_right_shapes() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        logits = torch.empty(3, 9, device=DEVICE)
        assert serving.top_k_top_p_sample(logits).shape == (3,)
        assert serving.silu_and_mul(torch.empty(3, 8, device=DEVICE)).shape == (3, 4)
