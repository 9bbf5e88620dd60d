"""TRL's trainers give the parameters and losses of the CPU, in float32 and in bfloat16."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from backend import DEVICE
from support import may_fall_back, run_python, supported

PATHS = [str(Path(__file__).parents[1])]

pytestmark = pytest.mark.ecosystem("trl")


def tuned(way: str, device: str, precision: str, file: Path) -> dict[str, torch.Tensor]:
    """Return losses and parameters after a training in another process."""
    done = run_python(
        f"import sys; sys.path[:0] = {PATHS!r}\n"
        f"from ecosystem import tuning\n"
        f"tuning.by_{way}({device!r}, {str(file)!r})",
        {"ACCELERATE_TORCH_DEVICE": device, "ACCELERATE_MIXED_PRECISION": precision},
    )
    if device != "cpu" and not may_fall_back():
        assert "fallbacks []" in done.stdout
    state: dict[str, torch.Tensor] = torch.load(file)
    return state


@pytest.fixture(params=["no", "bf16"])
def precision(request: pytest.FixtureRequest) -> str:
    if request.param == "bf16" and not (
        torch.amp.is_autocast_available(DEVICE) and supported(torch.bfloat16)
    ):
        pytest.skip("the backend was generated without autocast to bfloat16")
    return str(request.param)


@pytest.mark.parametrize("way", ["sft", "dpo"])
def test_tuning_gives_the_parameters_of_the_cpu(way: str, precision: str, tmp_path: Path) -> None:
    expected, actual = (
        tuned(way, device, precision, tmp_path / device) for device in ("cpu", DEVICE)
    )
    assert len(expected["losses"]) == 4
    tolerance = {"no": 1e-5, "bf16": 5e-3}[precision]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_grpo_trains_with_sampled_completions(precision: str, tmp_path: Path) -> None:
    state = tuned("grpo", DEVICE, precision, tmp_path / "state")
    assert all(values.isfinite().all() for values in state.values())


def test_the_default_precision_is_refused() -> None:
    """docs/features/integrations.md documents this error. If TRL changes, delete the sentence."""
    code = "import tempfile, trl; trl.SFTConfig(output_dir=tempfile.mkdtemp(), report_to=[])"
    done = run_python(code, {"ACCELERATE_TORCH_DEVICE": DEVICE}, check=False)
    assert "doesn't support bf16" in done.stderr
