"""The conformance tests on the example NPU, whose SDK has handles and command lists."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

NPU = Path(__file__).parent

FAMILIES = [f"kernels/test_{family}.py" for family in ("copy", "gather", "matmul", "sequence")]
TESTS = [tests for tests in ("runtime", "stateful", *FAMILIES) if (NPU.parent / tests).exists()]


@pytest.mark.full
@pytest.mark.parametrize(
    "tests",
    [TESTS, ["kernels"]],
    ids=["some", "kernels"],
)
def test_the_npu_passes_the_device_tests(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], tests: list[str]
) -> None:
    device = NPU.relative_to(device_library.DEVICE_ROOT).as_posix()
    done = run_tests(*(NPU.parent / path for path in tests), DEVICE=device)
    assert done.returncode == 0, done.stdout
