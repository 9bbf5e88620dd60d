"""Compiled kernels in files: later processes use them, and damaged files cause no errors."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

DEVICE = Path(device_library.DEVICE).name
pytestmark = pytest.mark.skipif(
    DEVICE not in ("opencl", "vulkan"), reason="a test of the devices opencl and vulkan"
)

Run = Callable[..., subprocess.CompletedProcess[str]]

# Runs two programs, and checks their results.
CODE = """
import _device
stream, buffer = _device.default_stream(0), _device.Buffer(0, 64)
view = buffer.view(0, _device.DType.float32, [16], [1])
assert _device.fill(stream, view, 2.0) is None
assert _device.unary(stream, _device.UnaryOp.neg, view, view, _device.UnaryParams()) is None
_device.synchronize(stream)
assert buffer.read() == b"\\0\\0\\0\\xc0" * 16
"""


@pytest.fixture
def start(run_child: Run) -> Callable[[str], None]:
    """Runs the two programs in a new process with this cache."""

    def run(cache: str) -> None:
        done = run_child(CODE, **{f"{DEVICE.upper()}_CACHE": cache})
        assert done.returncode == 0, done.stderr

    return run


def kept(folder: Path) -> dict[str, tuple[int, int]]:
    """The size and the inode of each file. A file that is written again has another inode."""
    return {path.name: (path.stat().st_size, path.stat().st_ino) for path in folder.iterdir()}


def test_a_second_start_compiles_nothing(start: Callable[[str], None], tmp_path: Path) -> None:
    start(str(tmp_path))
    first = kept(tmp_path)
    start(str(tmp_path))
    assert len(first) == 2
    assert kept(tmp_path) == first


@pytest.mark.parametrize("length", [0, 7, 100])
def test_a_truncated_file_is_written_again(
    start: Callable[[str], None], tmp_path: Path, length: int
) -> None:
    start(str(tmp_path))
    whole = kept(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:length])
    start(str(tmp_path))
    sizes = {name: size for name, (size, _) in whole.items()}
    assert {name: size for name, (size, _) in kept(tmp_path).items()} == sizes


def test_a_damaged_file_is_written_again(start: Callable[[str], None], tmp_path: Path) -> None:
    start(str(tmp_path))
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    spoilt = kept(tmp_path)
    start(str(tmp_path))
    assert set(kept(tmp_path).values()).isdisjoint(spoilt.values())


def test_a_folder_that_cannot_be_written_raises_no_error(
    start: Callable[[str], None], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    start(str(file / "cache"))
    assert file.read_text() == "not a folder"


def test_no_file_is_written_if_the_cache_is_off(
    start: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    start("off")
    assert not list(tmp_path.glob(f"*/{DEVICE}"))
