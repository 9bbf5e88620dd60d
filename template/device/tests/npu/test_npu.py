"""The conformance tests on the example NPU, whose SDK has handles and command lists."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import device_library
import pytest

NPU = Path(__file__).parent
PREFIX = device_library.ENV_PREFIX


FAMILIES = [f"kernels/test_{family}.py" for family in ("copy", "gather", "matmul", "sequence")]
TESTS = [tests for tests in ("runtime", "stateful", *FAMILIES) if (NPU.parent / tests).exists()]


@pytest.mark.parametrize(
    "tests",
    [TESTS, pytest.param(["kernels"], marks=pytest.mark.full)],
    ids=["some", "kernels"],
)
def test_the_npu_keeps_the_contract(tests: list[str], tmp_path: Path) -> None:
    without = (f"{PREFIX}_DEVICE_LIBRARY", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment[f"{PREFIX}_DEVICE"] = NPU.relative_to(device_library.DEVICE_ROOT).as_posix()
    arguments = ["-q", "-p", "no:cacheprovider", "-n0", f"--basetemp={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *(NPU.parent / path for path in tests), *arguments],
        env=environment,
        cwd=device_library.DEVICE_ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
