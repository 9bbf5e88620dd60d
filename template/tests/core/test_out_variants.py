"""out= variants that copy the result of the functional variant."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, moved, natively, needs, sample

pytestmark = needs(torch.float32)

aten: Any = torch.ops.aten
IMAGES = sample(2, 3, 8, 8)
CASES: dict[str, tuple[Any, tuple[Any, ...], list[str]]] = {
    "reflection_pad2d": (aten.reflection_pad2d.out, (IMAGES, [1, 1, 2, 2]), ["out"]),
    "replication_pad3d": (aten.replication_pad3d.out, (IMAGES, [1, 1, 2, 2, 0, 1]), ["out"]),
    "replication_pad2d_backward": (
        aten.replication_pad2d_backward.grad_input,
        (sample(2, 3, 12, 10), IMAGES, [1, 1, 2, 2]),
        ["grad_input"],
    ),
    "adaptive_avg_pool2d": (aten.adaptive_avg_pool2d.out, (IMAGES, [3, 3]), ["out"]),
    "adaptive_max_pool2d": (aten.adaptive_max_pool2d.out, (IMAGES, [3, 3]), ["out", "indices"]),
    "max_pool2d": (aten.max_pool2d_with_indices.out, (IMAGES, [2, 2]), ["out", "indices"]),
    "im2col": (aten.im2col.out, (IMAGES, [2, 2], [1, 1], [0, 0], [1, 1]), ["out"]),
    **{
        f"{name}_backward": (
            getattr(aten, f"{name}_backward").grad_input,
            (IMAGES, sample(2, 3, 8, 8, seed=1), *arguments),
            ["grad_input"],
        )
        for name, *arguments in (
            ("hardtanh", -1, 1),
            ("leaky_relu", 0.1, False),
            ("softplus", 1, 20),
            ("threshold", 0.5),
        )
    },
    "max_unpool2d": (
        aten.max_unpool2d.out,
        (IMAGES[..., :2], torch.arange(96).view(2, 3, 8, 2) % 16, [4, 4]),
        ["out"],
    ),
}


def dtype_of(name: str) -> torch.dtype:
    return torch.int64 if name == "indices" else torch.float32


@pytest.mark.parametrize("name", CASES)
def test_outputs_of_any_size_and_strides(name: str) -> None:
    operator, arguments, outputs = CASES[name]
    expected = {key: torch.empty(0, dtype=dtype_of(key)) for key in outputs}
    operator(*arguments, **expected)
    with natively():
        resized = {key: torch.empty(0, dtype=dtype_of(key), device=DEVICE) for key in outputs}
        operator(*moved(arguments), **resized)
        gaps = {
            key: torch.empty(*value.shape, 2, dtype=value.dtype, device=DEVICE)[..., 0]
            for key, value in expected.items()
        }
        results = operator(*moved(arguments), **gaps)
    for key, value in expected.items():
        assert_same(resized[key], value)
        assert_same(gaps[key], value)
    first = results if isinstance(results, torch.Tensor) else results[0]
    assert first is gaps[outputs[0]]


def test_outputs_of_another_dtype_or_device_are_refused() -> None:
    images = IMAGES.to(DEVICE)
    with pytest.raises(RuntimeError, match="dtype"):
        aten.reflection_pad2d.out(
            images, [1, 1, 2, 2], out=torch.empty(0, dtype=torch.int64, device=DEVICE)
        )
    with pytest.raises(RuntimeError, match="device"):
        aten.reflection_pad2d.out(images, [1, 1, 2, 2], out=torch.empty(0))
    for device in ("cpu", DEVICE):
        ones = torch.ones(2, device=device)
        for loss in (aten.mse_loss.out, aten.smooth_l1_loss.out, aten.huber_loss.out):
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
                loss(ones, ones, out=torch.zeros((), dtype=torch.int64, device=device))
        with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
            aten.hardswish.out(ones, out=torch.zeros(2, dtype=torch.float64, device=device))


@needs(torch.complex64)
def test_parts_of_a_complex_output_that_are_its_inputs() -> None:
    for device in ("cpu", DEVICE):
        values = torch.tensor([2 + 1j, 3 + 5j]).to(device)
        torch.complex(values.imag, values.real, out=values)
        assert values.tolist() == [1 + 2j, 5 + 3j]


def test_running_statistics_are_those_of_the_caller() -> None:
    mean = torch.zeros(3, device=DEVICE)
    outs = [torch.empty(0, device=DEVICE) for _ in range(3)]
    with natively():
        aten.native_batch_norm.out(
            IMAGES.to(DEVICE), None, None, mean, torch.ones(3, device=DEVICE), True, 0.1, 1e-5,
            out=outs[0], save_mean=outs[1], save_invstd=outs[2],
        )  # fmt: skip
    assert_same(mean, IMAGES.mean((0, 2, 3)) * 0.1, rtol=1e-4, atol=1e-5)
    assert outs[0].shape == IMAGES.shape
