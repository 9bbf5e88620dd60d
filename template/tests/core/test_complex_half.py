"""complex32, if it is supported: stored as two float16, computed like complex64.

The CPU has few operators for it, so complex64 with the same numbers is the reference.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs

HALF = torch.complex32
NUMBERS = torch.tensor([1 + 2j, 3 - 4j, 0.5j, -2.25 + 0j, 7 + 7j, 100 - 0.25j])
OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda z: z + z,
    "mul": lambda z: z * (1 + 2j),
    "div": lambda z: z / 2,
    "neg": lambda z: -z,
    "abs": torch.abs,
    "conj": lambda z: z.conj().resolve_conj(),
    "sum": torch.sum,
    "matmul": lambda z: z.view(2, 3)[:, :2] @ z.view(2, 3),
    "cat": lambda z: torch.cat([z, z]),
    "transpose": lambda z: z.view(2, 3).T.contiguous(),
    "real": torch.real,
    "eq": lambda z: z == z.flip(0),
}

pytestmark = needs(HALF, torch.complex64, torch.float16)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", OPERATORS)
def test_computes_like_complex64(name: str) -> None:
    expected = OPERATORS[name](NUMBERS)
    actual = OPERATORS[name](NUMBERS.to(HALF).to(DEVICE))
    if expected.is_complex():
        assert actual.dtype is HALF
        actual = torch.view_as_real(actual)
        expected = torch.view_as_real(expected.resolve_conj())
    wide = actual.float() if actual.is_floating_point() else actual
    assert_same(wide, expected, rtol=2e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize(
    "other", [torch.complex64, torch.float32, torch.float16, torch.int64], ids=str
)
def test_converts_both_ways(other: torch.dtype) -> None:
    numbers = NUMBERS if other.is_complex else NUMBERS.real.to(other)
    half = numbers.to(DEVICE).to(HALF)
    assert half.dtype is HALF
    assert torch.view_as_real(half).cpu().equal(torch.view_as_real(numbers.to(HALF)))
    if other.is_complex:
        assert_same(half.to(other), numbers.to(HALF).to(other))


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_creation_and_fill() -> None:
    made = torch.full((2, 3), 1 - 2j, dtype=HALF, device=DEVICE)
    assert torch.view_as_real(made).cpu().equal(torch.tensor([1.0, -2.0]).half().expand(2, 3, 2))
    assert torch.view_as_real(made.fill_(0.5)).cpu()[..., 0].eq(0.5).all()
    assert "complex32" in repr(made)
