"""The tests of runtime.h on the starter device. Unlike the simulator, it has no host addresses, the
same addresses on both devices, a large alignment, and one queue for all streams.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    "folder", [name for name in ("runtime", "stateful") if (TESTS / name).is_dir()]
)
def test_the_starter_passes_the_device_tests(
    run_tests: Callable[..., subprocess.CompletedProcess[str]], folder: str
) -> None:
    done = run_tests(TESTS / folder, "-m", "not full", DEVICE="starter")
    assert done.returncode == 0, done.stdout
