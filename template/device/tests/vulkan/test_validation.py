"""The Khronos validation layer finds no wrong use of Vulkan."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

LAYER = Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")
pytestmark = [
    pytest.mark.skipif(Path(device_library.DEVICE).name != "vulkan", reason="for this device only"),
    pytest.mark.skipif(not LAYER.exists(), reason="there is no validation layer"),
]
TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("folder", ["kernels", "groups", "runtime"])
def test_all_calls_are_valid(
    folder: str,
    run_tests: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The layer prints each wrong use, with the identifier of the rule in the specification."""
    monkeypatch.setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
    done = run_tests(TESTS / folder, "-s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation Error" not in done.stdout, done.stdout
