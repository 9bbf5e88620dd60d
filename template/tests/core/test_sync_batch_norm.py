"""The operators of ``torch.nn.SyncBatchNorm`` equal batch normalization of the whole batch."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.comparisons import close
from support import needs, sample
from torch import Tensor

EPS, MOMENTUM = 1e-5, 0.1

pytestmark = needs(torch.float32, torch.int32)


def on_device(*values: Tensor) -> list[Tensor]:
    return [value.to(DEVICE) for value in values]


@pytest.mark.usefixtures("everything_is_native")
@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4), (5, 3, 2, 4)])
@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float16, marks=needs(torch.float16))]
)
def test_two_processes_equal_one_batch(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    whole = sample(*shape, dtype=dtype).float().requires_grad_()
    gradient = sample(*shape, dtype=dtype, seed=1)
    weight, bias = (sample(3, low=0.5, seed=seed).requires_grad_() for seed in (2, 3))
    mean, variance = torch.zeros(3), torch.ones(3)
    running = on_device(mean, variance)
    expected = torch.nn.functional.batch_norm(
        whole, mean, variance, weight, bias, training=True, momentum=MOMENTUM, eps=EPS
    )
    expected.backward(gradient.float())

    # Two processes, one of which has 2 of 5 rows.
    inputs = [part.contiguous().to(DEVICE) for part in whole.detach().to(dtype).split((2, 3))]
    gradients = [part.contiguous().to(DEVICE) for part in gradient.split((2, 3))]
    slope, shift = on_device(weight.detach(), bias.detach())
    counts = torch.tensor([part.numel() / 3 for part in inputs], device=DEVICE)
    stats = [torch.batch_norm_stats(part, EPS) for part in inputs]
    means, invstds = (torch.stack(values) for values in zip(*stats, strict=True))
    mean_all, invstd_all = torch.batch_norm_gather_stats_with_counts(
        inputs[0], means, invstds, running[0], running[1], MOMENTUM, EPS, counts
    )
    outputs = [
        torch.batch_norm_elemt(part, slope, shift, mean_all, invstd_all, EPS) for part in inputs
    ]
    reduced = [
        torch.batch_norm_backward_reduce(grad, part, mean_all, invstd_all, slope, True, True, True)
        for grad, part in zip(gradients, inputs, strict=True)
    ]
    sums = [sum(values) for values in zip(*reduced, strict=True)]
    back = [
        torch.batch_norm_backward_elemt(
            grad, part, mean_all, invstd_all, slope, sums[0], sums[1], counts.to(torch.int32)
        )
        for grad, part in zip(gradients, inputs, strict=True)
    ]

    assert {value.dtype for value in (*outputs, *back)} == {dtype}
    for mine, theirs in (
        (torch.cat(outputs), expected),
        (torch.cat(back), whole.grad),
        (sums[2], weight.grad),
        (sums[3], bias.grad),
        (running[0], mean),
        (running[1], variance),
    ):
        torch.testing.assert_close(mine.cpu().float(), theirs, **close(dtype))
