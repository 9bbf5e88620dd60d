"""The tests of runtime.h on a device that is unlike the simulator, the toy of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import device_library
import pytest

TOY = Path(__file__).parent
PREFIX = device_library.ENV_PREFIX


@pytest.mark.parametrize("folder", ["runtime", "stateful"])
def test_the_toy_keeps_the_contract(folder: str, tmp_path: Path) -> None:
    without = (f"{PREFIX}_DEVICE_LIBRARY", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment[f"{PREFIX}_DEVICE"] = TOY.relative_to(device_library.DEVICE_ROOT).as_posix()
    tests = TOY.parent / folder
    arguments = ["-q", "-p", "no:cacheprovider", "-n0", "-m", "not full", f"--basetemp={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(tests), *arguments],
        env=environment,
        cwd=device_library.DEVICE_ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
