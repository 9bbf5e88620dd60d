"""Training with other libraries gives the parameters and losses of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from backend import DEVICE
from support import run_python, supported

PATHS = [str(Path(__file__).parents[1])]


@pytest.mark.parametrize("precision", ["no", "bf16"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("trainer", marks=pytest.mark.ecosystem("transformers", "accelerate")),
        pytest.param("accelerate", marks=pytest.mark.ecosystem("accelerate")),
        pytest.param("lightning", marks=pytest.mark.ecosystem("lightning")),
    ],
)
def test_training_gives_the_parameters_and_losses_of_the_cpu(
    name: str, precision: str, tmp_path: Path
) -> None:
    if precision == "bf16" and not (
        torch.amp.is_autocast_available(DEVICE) and supported(torch.bfloat16)
    ):
        pytest.skip("the backend was generated without autocast to bfloat16")
    states = []
    for device in ("cpu", DEVICE):
        file = str(tmp_path / device)
        run_python(
            f"import sys; sys.path[:0] = {PATHS!r}\n"
            f"from ecosystem import trainings\n"
            f"trainings.by_{name}({device!r}, {precision!r}, {file!r})",
            {"ACCELERATE_TORCH_DEVICE": device, "ACCELERATE_MIXED_PRECISION": precision},
        )
        states.append(torch.load(file))
    expected, actual = states
    assert len(expected["losses"]) > 1
    tolerance = {"no": 1e-5, "bf16": 2e-3}[precision]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
