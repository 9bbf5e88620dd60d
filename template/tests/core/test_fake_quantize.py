"""Fake quantization and its observer, against the CPU."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.comparisons import compare
from support import needs, sample

pytestmark = [
    needs(torch.float32, torch.int32),
    pytest.mark.usefixtures("everything_is_native"),
]
GRIDS = [(-128, 127), (0, 255), (-8, 7)]


def check(function: object, *tensors: torch.Tensor) -> None:
    """Compare values, and gradients of floating-point tensors."""
    results = []
    for device in (DEVICE, "cpu"):
        leaves = [
            tensor.detach().clone().to(device).requires_grad_(tensor.is_floating_point())
            for tensor in tensors
        ]
        result = function(*leaves)
        weights = torch.linspace(0, 1, result.numel()).to(device).view_as(result)
        (result * weights).sum().backward()
        results.append([result, *(leaf.grad for leaf in leaves if leaf.grad is not None)])
    for mine, theirs in zip(*results, strict=True):
        assert mine.device.type == DEVICE
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_per_tensor_fake_quantization(grid: tuple[int, int]) -> None:
    x = sample(5, 7, low=-9, high=9)
    check(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, *grid), x)
    scale, zero = torch.tensor(0.07), torch.tensor(2, dtype=torch.int32)
    compare(lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, s, z, *grid), x, scale, zero)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_per_channel_fake_quantization(grid: tuple[int, int], axis: int) -> None:
    x = sample(3, 4, 5, low=-9, high=9)
    scale = sample(x.size(axis), low=0.01, high=0.2)
    zero = torch.arange(x.size(axis), dtype=torch.int32)
    check(
        lambda x: torch.fake_quantize_per_channel_affine(
            x, scale.to(x.device), zero.to(x.device), axis, *grid
        ),
        x.transpose(0, 2).contiguous().transpose(0, 2),
    )


def test_zero_points_that_are_not_integers_are_rounded_with_the_quotient() -> None:
    compare(
        lambda *tensors: torch.fake_quantize_per_channel_affine(*tensors, 0, -8, 7),
        sample(4, 6, low=-1, high=1),
        sample(4, low=0.05, high=0.2),
        torch.tensor([0.5, -0.3, 2.0, 0.9]),
    )


def test_dtypes_and_zero_points_that_the_cpu_refuses() -> None:
    x, scale = torch.ones(2, device=DEVICE), torch.ones(2, device=DEVICE)

    def quantize(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> None:
        torch.fake_quantize_per_channel_affine(x, scale, zero.to(DEVICE), 0, 0, 255)

    with pytest.raises(NotImplementedError, match="not implemented for Int: convert the input"):
        quantize(x.int(), scale, torch.zeros(2, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="must be between"):
        quantize(x, scale, torch.full((2,), 300, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="Zero-point must be"):
        quantize(x, scale, torch.zeros(2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="Scale must be"):
        quantize(x, scale.half(), torch.zeros(2, dtype=torch.int32))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_learnable_scales(grid: tuple[int, int]) -> None:
    x = sample(4, 6, low=-9, high=9)
    one = torch.tensor([0.1]), torch.tensor([1.3])
    check(
        lambda x, s, z: torch._fake_quantize_learnable_per_tensor_affine(x, s, z, *grid, 0.5),
        x,
        *one,
    )
    many = sample(6, low=0.05, high=0.3), sample(6, low=0, high=3)
    check(
        lambda x, s, z: torch._fake_quantize_learnable_per_channel_affine(x, s, z, 1, *grid, 0.5),
        x,
        *many,
    )


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_fused_moving_average_observer(
    grid: tuple[int, int], axis: int | None, symmetric: bool
) -> None:
    states = []
    for device in (DEVICE, "cpu"):
        count = 1 if axis is None else 4
        low = torch.full((count,), float("inf"), device=device)
        high = torch.full((count,), -float("inf"), device=device)
        scale = torch.ones(count, device=device)
        zero = torch.zeros(count, dtype=torch.int32, device=device)
        results = []
        for step, (observes, fakes) in enumerate([(1, 1), (1, 0), (0, 1), (1, 1)]):
            x = sample(4, 4, low=-step - 1, high=3 * step, seed=step).to(device).requires_grad_()
            switches = (torch.tensor([on], device=device) for on in (observes, fakes))
            result = torch.fused_moving_avg_obs_fake_quant(
                x,
                *switches,
                low,
                high,
                scale,
                zero,
                0.1,
                *grid,
                axis or 0,
                axis is not None,
                symmetric,
            )
            result.sum().backward()
            results += [result, x.grad]
        states.append([*results, low, high, scale, zero])
    for mine, theirs in zip(*states, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_quantization_aware_training() -> None:
    from torch.ao import quantization

    losses = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        model = quantization.prepare_qat(model.train()).to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x, target = sample(16, 8, low=-1, high=1), sample(16, 4, low=-1, high=1, seed=1)
        for _ in range(5):
            loss = torch.nn.functional.mse_loss(model(x.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
