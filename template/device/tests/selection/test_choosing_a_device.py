"""The build: which device it compiles, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

Configure = Callable[..., "subprocess.CompletedProcess[str]"]
PREFIX = device_library.ENV_PREFIX


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Runs CMake on device/ with settings, in a folder of the test's own."""

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        build = str(tmp_path / "build")
        options = [f"-D{PREFIX}_{name}={value}" for name, value in settings.items()]
        options += [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug"]
        options += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={device_library.tool('ninja')}"]
        command = [device_library.tool("cmake"), "-S", str(device_library.DEVICE_ROOT), "-B", build]
        return subprocess.run([*command, *options], capture_output=True, text=True)

    return run


def one_line(message: str) -> str:
    return " ".join(message.split())


def test_a_device_that_does_not_exist_is_named_with_the_fix(configure: Configure) -> None:
    done = configure(DEVICE="nowhere")
    assert done.returncode != 0
    folder = device_library.DEVICE_ROOT / "nowhere"
    assert f"There is no device in {folder}: {folder}/runtime.cpp is missing." in one_line(
        done.stderr
    )
    assert f"Set {PREFIX}_DEVICE to" in one_line(done.stderr)


def test_a_device_library_that_does_not_exist_is_named(configure: Configure) -> None:
    done = configure(DEVICE_LIBRARY="/nowhere/lib.so")
    assert done.returncode != 0
    assert f"{PREFIX}_DEVICE_LIBRARY names /nowhere/lib.so, which does not exist" in one_line(
        done.stderr
    )
