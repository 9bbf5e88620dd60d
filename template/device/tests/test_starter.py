"""The tests of runtime.h on the starter device. Unlike the simulator, it has no host addresses, the
same addresses on both devices, a large alignment, and one queue for all streams.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import device_library
import pytest

TESTS = Path(__file__).parent
PREFIX = device_library.ENV_PREFIX


@pytest.mark.parametrize(
    "folder", [name for name in ("runtime", "stateful") if (TESTS / name).is_dir()]
)
def test_the_starter_keeps_the_contract(folder: str, tmp_path: Path) -> None:
    without = (f"{PREFIX}_DEVICE_LIBRARY", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment[f"{PREFIX}_DEVICE"] = "starter"
    arguments = ["-q", "-p", "no:cacheprovider", "-n0", "-m", "not full", f"--basetemp={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(TESTS / folder), *arguments],
        env=environment,
        cwd=device_library.DEVICE_ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
