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


def make_device(folder: Path, *families: str) -> Path:
    """A folder that looks like a device to the build."""
    (folder / "kernels").mkdir(parents=True)
    (folder / "runtime.cpp").touch()
    for family in families:
        (folder / "kernels" / f"{family}.cpp").touch()
    return folder


def families(log: str, kind: str) -> list[str]:
    """What the build's log says of the families."""
    lines = [line for line in log.splitlines() if f"{kind} families:" in line]
    assert len(lines) == 1
    return lines[0].split(":", 1)[1].split()


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


def test_the_simulator_has_every_family(configure: Configure) -> None:
    done = configure(DEVICE="simulator")
    assert done.returncode == 0, done.stderr
    assert families(done.stdout, "unsupported") == []


def test_a_device_elsewhere_has_the_families_it_has_files_for(
    configure: Configure, tmp_path: Path
) -> None:
    device = make_device(tmp_path / "elsewhere", "unary", "matmul")
    done = configure(DEVICE=str(device))
    assert done.returncode == 0, done.stderr
    assert families(done.stdout, "native") == ["unary", "matmul"]
    assert "binary" in families(done.stdout, "unsupported")
    assert "unary" not in families(done.stdout, "unsupported")


def test_every_family_can_be_declined(configure: Configure, tmp_path: Path) -> None:
    done = configure(DEVICE=str(make_device(tmp_path / "bare")))
    declining = {path.stem for path in (device_library.DEVICE_ROOT / "unsupported").glob("*.cpp")}
    assert set(families(done.stdout, "unsupported")) == declining


@pytest.mark.full
def test_a_missing_entry_point_fails_the_link_by_name(configure: Configure, tmp_path: Path) -> None:
    assert configure(DEVICE=str(make_device(tmp_path / "bare"))).returncode == 0
    command = [device_library.tool("cmake"), "--build", str(tmp_path / "build")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "undefined reference to" in done.stdout
    assert "device::create_stream(int, int)" in done.stdout
    assert "device::unary" not in done.stdout
