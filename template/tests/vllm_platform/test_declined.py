"""vLLM on a device that does not support its attention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from backend import DEVICE
from changed_device import changed_device

pytestmark = pytest.mark.ecosystem("vllm", "transformers")


def test_unsupported_attention_is_refused(
    checkpoint: Callable[[str], Path], refusal: Callable[..., str], tmp_path: Path
) -> None:
    source = Path(__file__).parents[1] / "core" / "declining_device.cpp"
    declining = changed_device(source, tmp_path) | {"DECLINED": "attention"}
    said = refusal(checkpoint("llama"), environment=declining)
    assert f"attention on {DEVICE} cannot run this model: " in said
    assert "declined by a test" in said
