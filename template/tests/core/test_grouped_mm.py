"""Products for each group of rows, columns or inner elements, against loops on the CPU."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from support import needs, sample

E4M3 = torch.float8_e4m3fn
ENDS = [[3, 3, 10], [0, 4, 4, 9, 16]]

pytestmark = [
    needs(torch.float32, torch.bfloat16),
    pytest.mark.usefixtures("everything_is_native"),
]


def kinds(ends: list[int], ragged: str) -> list[tuple[int, ...]]:
    groups, total = len(ends), ends[-1]
    return {
        "rows": [(total, 16), (groups, 16, 8)],
        "columns": [(groups, 6, 16), (16, total)],
        "inner": [(6, total), (total, 8)],
        "none": [(groups, 6, 16), (groups, 16, 8)],
    }[ragged]


def by_group(
    a: torch.Tensor, b: torch.Tensor, ends: list[int], ragged: str, scales: tuple[torch.Tensor, ...]
) -> torch.Tensor:
    """Return the products of all groups. Scales: (groups or 1, lines) for each factor."""
    parts = []
    for group, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        piece = slice(first, end)
        parts_of_a = {"rows": (piece,), "inner": (slice(None), piece)}
        parts_of_b = {"columns": (slice(None), piece), "inner": (piece,)}
        one = a[parts_of_a.get(ragged, (group,))].double()
        two = b[parts_of_b.get(ragged, (group,))].double()
        if scales:
            rows, columns = (scale[min(group, scale.size(0) - 1)].double() for scale in scales)
            rows = rows[piece] if ragged == "rows" else rows
            columns = columns[piece] if ragged == "columns" else columns
            one, two = one * rows[:, None], two * columns
        parts.append(one @ two)
    if ragged in ("rows", "columns"):
        return torch.cat(parts, 0 if ragged == "rows" else 1)
    return torch.stack(parts)


def on_device(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


@pytest.mark.parametrize("ragged", ["rows", "columns", "inner", "none"])
@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("transposed", [False, True])
def test_groups(ragged: str, ends: list[int], dtype: torch.dtype, transposed: bool) -> None:
    one, two = kinds(ends, ragged)
    a = sample(*one, dtype=dtype)
    b = sample(*two, dtype=dtype, seed=1)
    b_given = (
        b.transpose(-1, -2).contiguous().to(DEVICE).transpose(-1, -2)
        if transposed
        else b.to(DEVICE)
    )
    offs = None if ragged == "none" else on_device(ends)
    got = torch._grouped_mm(a.to(DEVICE), b_given, offs)
    wanted = by_group(a, b, ends, ragged, ())
    assert got.dtype is dtype
    bound = 1e-5 if dtype is torch.float32 else 2**-8
    torch.testing.assert_close(got.cpu().double(), wanted, rtol=bound, atol=bound * 100)


@pytest.mark.parametrize("ragged", ["rows", "columns", "inner", "none"])
def test_gradients(ragged: str) -> None:
    ends = ENDS[1]
    leaves = [sample(*size, seed=i) for i, size in enumerate(kinds(ends, ragged))]
    grads = []
    for device in (DEVICE, "cpu"):
        one, two = (leaf.to(device).requires_grad_() for leaf in leaves)
        if device == DEVICE:
            result = torch._grouped_mm(one, two, None if ragged == "none" else on_device(ends))
        else:
            result = by_group(one, two, ends, ragged, ()).float()
        result.square().sum().backward()
        grads.append([one.grad.cpu(), two.grad.cpu()])
    for mine, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("ragged", ["rows", "columns", "inner", "none"])
@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_scaled_groups(ragged: str, ends: list[int]) -> None:
    one, two = kinds(ends, ragged)
    a, b = sample(*one).to(E4M3), sample(*two, seed=1).to(E4M3)
    groups = len(ends)
    a_matrices = groups if ragged in ("columns", "none", "inner") else 1
    b_matrices = groups if ragged in ("rows", "none", "inner") else 1
    scale_a = sample(a_matrices, a.size(-2), low=0.1)
    scale_b = sample(b_matrices, b.size(-1), low=0.1, seed=1)

    def given(scale: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return (scale if factor.dim() == 3 else scale.flatten()).to(DEVICE)

    got = torch._scaled_grouped_mm(
        a.to(DEVICE),
        b.to(DEVICE),
        given(scale_a, a),
        given(scale_b, b),
        None if ragged == "none" else on_device(ends),
    )
    wanted = by_group(a.float(), b.float(), ends, ragged, (scale_a, scale_b))
    assert got.dtype is torch.bfloat16
    torch.testing.assert_close(got.cpu().double(), wanted, rtol=2**-7, atol=2)


def test_wrong_arguments_are_refused() -> None:
    a, b = torch.ones(10, 16, device=DEVICE), torch.ones(3, 16, 8, device=DEVICE)
    ends = on_device(ENDS[0])
    with pytest.raises(RuntimeError, match="contraction dimension"):
        torch._grouped_mm(a[:, :8], b, ends)
    with pytest.raises(RuntimeError, match="offset"):
        torch._grouped_mm(a, b)
    with pytest.raises(RuntimeError, match="Offsets have to be int32"):
        torch._grouped_mm(a, b, ends.long())
    with pytest.raises(RuntimeError, match="batch sizes have to match"):
        torch._grouped_mm(a, b, ends[:2])
    with pytest.raises(RuntimeError, match="Float32, BFloat16 or Float16"):
        torch._grouped_mm(a.double(), b.double(), ends)
    scales = torch.ones(10, device=DEVICE), torch.ones(3, 8, device=DEVICE)
    for scale_a, scale_b in [(scales[0].half(), scales[1]), (scales[0], scales[1].double())]:
        with pytest.raises(ValueError, match="must both be float32"):
            torch._scaled_grouped_mm(a.to(E4M3), b.to(E4M3), scale_a, scale_b, ends)
