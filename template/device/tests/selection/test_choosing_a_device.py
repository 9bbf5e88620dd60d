"""The build: which device it compiles, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

NAMES = ("fill", "copy")  # of families with more than one test
Configure = Callable[..., "subprocess.CompletedProcess[str]"]
PREFIX = device_library.ENV_PREFIX


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Runs CMake on device/ with settings, in a folder of the test's own."""

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        build = str(tmp_path / "build")
        options = [
            f"-D{name}={value}" if name.startswith("CMAKE_") else f"-D{PREFIX}_{name}={value}"
            for name, value in settings.items()
        ]
        options += [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug"]
        options += ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
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


@pytest.mark.parametrize(("setting", "fails"), [("OFF", False), ("ON", True)])
def test_a_warning_in_a_device_elsewhere_is_an_error_only_on_request(
    configure: Configure, tmp_path: Path, setting: str, fails: bool
) -> None:
    source = tmp_path / "elsewhere" / "runtime.cpp"
    source.parent.mkdir()
    source.write_text("static int of_no_use() { return 1; }\n")
    done = configure(DEVICE=str(source.parent), CMAKE_COMPILE_WARNING_AS_ERROR=setting)
    assert done.returncode == 0, done.stderr
    (entry,) = (
        entry
        for entry in json.loads((tmp_path / "build" / "compile_commands.json").read_text())
        if entry["file"] == str(source)
    )
    done = subprocess.run(
        entry["command"], shell=True, cwd=entry["directory"], capture_output=True, text=True
    )
    assert "of_no_use" in done.stderr
    assert (done.returncode != 0) == fails, done.stderr


def test_a_device_that_cannot_be_built_is_told_once(tmp_path: Path) -> None:
    device = tmp_path / "device-that-is-none"
    tests = [str(Path(__file__).parents[1] / "kernels" / f"test_{name}.py") for name in NAMES]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests],
            env={**os.environ, f"{PREFIX}_DEVICE": str(device), f"{PREFIX}_DEVICE_LIBRARY": ""},
            cwd=device_library.DEVICE_ROOT.parent,
            capture_output=True,
            text=True,
        )
    finally:
        build = device_library.DEVICE_ROOT.parent / "build" / f"device-{device.name}"
        shutil.rmtree(build, ignore_errors=True)
    assert done.returncode == 1
    assert (done.stdout + done.stderr).count("There is no device in") == 1, done.stdout
