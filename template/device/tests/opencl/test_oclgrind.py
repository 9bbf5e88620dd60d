"""Oclgrind: an error in a kernel fails its test, and unusable drivers are reported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import device_library
import pytest

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(Path(device_library.DEVICE).name != "opencl", reason="for this device only"),
    pytest.mark.skipif(shutil.which("oclgrind") is None, reason="there is no oclgrind"),
]

RUNNER = Path(__file__).parent / "oclgrind"
TEST = '''
def test_kernel(api, stream, make_buffer):
    module = api.load_module(0, b"""{kernel}""", "")
    buffer = make_buffer(64)
    arguments = [(api.ArgumentKind.WRITTEN, buffer.address, buffer.bytes)]
    api.launch_function(stream, api.find_function(module, "f"), (2, 1, 1), (8, 1, 1), 0, arguments)
    api.synchronize(stream)
'''
KERNELS = {
    "right": ("to[get_global_id(0)] = 1;", ""),
    "overrun": ("to[get_global_id(0) + 4096] = 1;", "Invalid write of size 4"),
    "race": ("to[0] = get_global_id(0);", "data race"),
}


@pytest.fixture
def run(api: ModuleType) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs tests under Oclgrind, with the module and fixtures of these tests."""

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        folders = [Path(api.__file__ or "").parent, RUNNER.parents[1]]
        path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, RUNNER, *arguments],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=600,
        )

    return start


@pytest.mark.parametrize("name", KERNELS)
def test_a_finding_in_a_kernel_fails_its_test(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, name: str
) -> None:
    body, finding = KERNELS[name]
    test = tmp_path / "test_kernel.py"
    test.write_text(TEST.format(kernel=f"kernel void f(global int* to) {{ {body} }}"))
    done = run(str(test), "-p", "conftest", f"--rootdir={tmp_path}")
    assert done.returncode == (1 if finding else 0), done.stdout + done.stderr
    assert ("1 failed" if finding else "1 passed") in done.stdout
    assert finding in done.stdout


def test_a_device_that_cannot_be_used_is_named_with_the_reason(api: ModuleType) -> None:
    path = os.pathsep.join([str(Path(api.__file__ or "").parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["oclgrind", sys.executable, "-c", "import _device; _device.properties(0)"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(
        "there are Oclgrind:Oclgrind Simulator, which has no shared virtual memory"
    )
