"""DeepSpeed chooses the device, and trains on two of them as DistributedDataParallel does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE
from ecosystem.processes import has_collectives, launch
from support import (
    WITHOUT_AUTOLOAD,
    assert_same,
    may_fall_back,
    natively,
    needs,
    needs_two_devices,
    run_python,
    sample,
)

pytestmark = pytest.mark.ecosystem("deepspeed")


@pytest.mark.parametrize("wanted", ["", DEVICE, "cpu"])
def test_deepspeed_uses_the_device_unless_ds_accelerator_is_set(wanted: str) -> None:
    code = "import deepspeed; print(deepspeed.get_accelerator().device_name())"
    done = run_python(code, {"DS_ACCELERATOR": wanted} if wanted else None)
    assert done.stdout.split()[-1] == (wanted or DEVICE)
    assert "unable to detect" not in done.stdout + done.stderr


def test_an_accelerator_chosen_before_the_import_is_kept() -> None:
    code = f"""
        import deepspeed
        chosen = deepspeed.get_accelerator()
        import {PACKAGE}
        assert deepspeed.get_accelerator() is chosen and chosen.device_name() == "cpu"
    """
    run_python(code, WITHOUT_AUTOLOAD)


def test_the_accelerator_agrees_with_the_device_module() -> None:
    import deepspeed

    accelerator = deepspeed.get_accelerator()
    backend = torch.get_device_module(DEVICE)
    assert accelerator.device_count() == backend.device_count()
    assert accelerator.current_device_name() == f"{DEVICE}:{backend.current_device()}"
    assert set(accelerator.supported_dtypes()) <= set(backend.supported_dtypes())
    assert 0 < accelerator.available_memory() <= accelerator.total_memory()
    computes = backend.dtype_support(torch.bfloat16) == "supported"
    assert accelerator.is_bf16_supported() is computes
    assert (torch.bfloat16 in accelerator.supported_dtypes()) is computes
    tensor = accelerator.FloatTensor([1.0, 2.0])
    assert accelerator.on_accelerator(tensor) and not accelerator.on_accelerator(tensor.cpu())
    assert accelerator.is_pinned(accelerator.pin_memory(torch.ones(2)))
    with accelerator.stream(accelerator.Stream()):
        event = accelerator.Event(enable_timing=True)
        event.record()
    event.synchronize()
    state = accelerator.get_rng_state()
    accelerator.manual_seed_all(accelerator.initial_seed() + 1)
    accelerator.set_rng_state(state)
    assert accelerator.get_rng_state().equal(state)


def test_ranges_of_the_accelerator_are_in_the_profile() -> None:
    import deepspeed

    accelerator = deepspeed.get_accelerator()
    accelerator.range_push("before")
    with torch.profiler.profile() as profile:
        accelerator.range_push("within")
        accelerator.range_pop()
    accelerator.range_pop()
    accelerator.range_pop()
    names = {event.name for event in profile.events()}
    assert "within" in names and "before" not in names


def test_limiting_the_visible_devices_to_others_than_the_first_is_refused() -> None:
    import deepspeed

    environment: dict[str, str] = {}
    accelerator = deepspeed.get_accelerator()
    accelerator.set_visible_devices_envs(environment, [0, 1])
    with pytest.raises(ValueError, match=r"cannot be limited to the devices \[1\]"):
        accelerator.set_visible_devices_envs(environment, [1])
    assert environment == {}


@needs(torch.float32)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("correct", [0, 1])
@pytest.mark.parametrize("decoupled", [True, False])
def test_fused_adam_runs_natively(dtype: torch.dtype, correct: int, decoupled: bool) -> None:
    from deepspeed.ops.adam import FusedAdam

    if dtype not in torch.get_device_module(DEVICE).supported_dtypes():
        pytest.skip(f"generated without {dtype}")
    values = [sample(3, 5, dtype=dtype, low=-1, high=1), sample(7, dtype=dtype, low=-1, high=1)]
    gradients = [sample(*value.shape, dtype=dtype, low=-1, high=1, seed=1) for value in values]
    options = {"lr": 0.1, "betas": (0.5, 0.75), "weight_decay": 0.1}
    here = [torch.nn.Parameter(value.to(DEVICE)) for value in values]
    optimizer = FusedAdam(here, adam_w_mode=decoupled, bias_correction=bool(correct), **options)
    with natively():
        for _ in range(3):
            for parameter, gradient in zip(here, gradients, strict=True):
                parameter.grad = gradient.to(DEVICE)
            optimizer.step()
    for parameter, value, gradient in zip(here, values, gradients, strict=True):
        expected = adam(value.double(), gradient.double(), bool(correct), decoupled)
        tolerance = 1e-5 if dtype is torch.float32 else 0.05
        assert_same(parameter.detach(), expected.to(dtype), rtol=tolerance, atol=tolerance)


def adam(
    value: torch.Tensor, gradient: torch.Tensor, correct: bool, decoupled: bool
) -> torch.Tensor:
    """Return the parameter after three steps, computed by the formulas."""
    rate, first, second, decay = 0.1, 0.5, 0.75, 0.1
    average, square = torch.zeros_like(value), torch.zeros_like(value)
    for step in range(1, 4):
        moved = gradient if decoupled else gradient + decay * value
        average = first * average + (1 - first) * moved
        square = second * square + (1 - second) * moved**2
        if decoupled:
            value = value * (1 - rate * decay)
        mean = average / (1 - first**step) if correct else average
        variance = square / (1 - second**step) if correct else square
        value = value - rate * mean / (variance.sqrt() + 1e-8)
    return value


def test_loading_an_unsupported_operator_raises() -> None:
    from deepspeed.ops import op_builder

    assert not op_builder.FusedLambBuilder().is_compatible()
    with pytest.raises(NotImplementedError, match=f"FusedLamb is not written for {DEVICE}"):
        op_builder.FusedLambBuilder().load()


def run(ways: list[str], folder: Path) -> dict[str, Any]:
    """Train in two processes by ``zero.py``, and return what it wrote."""
    file = folder / "losses.json"
    launch([str(Path(__file__).with_name("zero.py")), str(file), *ways])
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


EXPECTED = {
    "float32": {
        "ddp-float32": ("0-float32", "1-float32", "2-float32", "3-float32", "3-float32-torch"),
    },
    "bfloat16": {
        # First, because stage 3 replaces PyTorch's linear layer for later runs.
        "ddp-bfloat16-empty": ("0-bfloat16",),
        "ddp-bfloat16": ("1-bfloat16", "2-bfloat16", "3-bfloat16", "3-bfloat16-torch"),
    },
    "checkpoints": {"ddp-float32": ("1-float32-checkpoint", "3-float32-checkpoint")},
    # DeepSpeed first compiles its Adam for the host, which takes minutes.
    "compiled": {"ddp-float32": ("2-float32-host", "3-float32-host")},
}
"""Runs of ``zero.py``, by the run of DistributedDataParallel that must give the same losses."""


@needs(torch.float32, torch.bfloat16)
@needs_two_devices
@has_collectives
@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=pytest.mark.full if part == "compiled" else []) for part in EXPECTED],
)
def test_zero_has_the_losses_of_distributed_data_parallel(part: str, tmp_path: Path) -> None:
    pairs = [(way, ddp) for ddp, ways in EXPECTED[part].items() for way in ways]
    found = run([*EXPECTED[part], *(way for way, _ in pairs)], tmp_path)
    for way, ddp in pairs:
        # DeepSpeed adds a bias in a separate call, which rounds once more in bfloat16.
        tolerance = 5e-3 if way.startswith("3-bfloat16") else 1e-5
        assert found[way]["losses"] == pytest.approx(found[ddp]["losses"], rel=tolerance), way
        assert may_fall_back() or not found[way]["fallbacks"], way
    assert found[pairs[0][0]]["losses"][0] > found[pairs[0][0]]["losses"][-1]
