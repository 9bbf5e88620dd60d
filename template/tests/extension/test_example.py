"""The worked example, built outside of the tree against the installed package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from backend import ENV_PREFIX, PACKAGE, backend
from support import EXAMPLES, needs

pytestmark = needs(torch.float32)

CHECKS = Path(__file__).parent / "checks.py"


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command with this process's Python first on the path, and return its output."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout


def check(folder: Path, *names: str, **environment: str) -> None:
    """Run checks by name with the example in a folder. Its kernel needs memory that the host can
    address, which the simulator has with this setting.
    """
    path = os.pathsep.join((str(folder), str(CHECKS.parents[1])))
    environment = {f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS": "1"} | environment
    output = run(sys.executable, CHECKS, *names, cwd=folder, PYTHONPATH=path, **environment)
    outcomes = dict(line.split(": ") for line in output.splitlines())
    assert list(outcomes) == list(names)
    for outcome in outcomes.values():
        if outcome != "ok":
            pytest.skip(outcome)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, built by CMake."""
    if shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") is None:
        pytest.skip("there is no cmake")
    folder = tmp_path_factory.mktemp("outside") / "extension"
    shutil.copytree(EXAMPLES / "extension", folder)
    run(
        "cmake", "-S", ".", "-B", "build",
        f"-DCMAKE_PREFIX_PATH={backend.cmake_prefix_path}",
        f"-DPython_EXECUTABLE={sys.executable}",
        cwd=folder,
    )  # fmt: skip
    run("cmake", "--build", "build", cwd=folder)
    run("cmake", "--install", "build", "--prefix", ".", cwd=folder)
    return folder


def test_the_library_uses_only_the_stable_abi(project: Path) -> None:
    """Symbols in PyTorch's C++ namespaces are not stable between versions."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm, which lists the symbols of a library")
    (library,) = (project / "gated").glob("*.so")
    needed = run("nm", "--dynamic", "--undefined-only", "--demangle", library, cwd=project)
    assert (
        f"{PACKAGE}::stable::library::launch_host" in needed and "torch_call_dispatcher" in needed
    )
    assert not re.findall(r"^.*\b(?:at|c10|torch)::.*$", needed, re.MULTILINE)


def test_the_example_equals_the_cpu_in_stream_order(project: Path) -> None:
    check(project, "forward", "order_of_streams", "gradients", "mistakes")


@pytest.mark.full
def test_the_example_can_be_compiled_and_passes_opcheck(project: Path) -> None:
    check(project, "compiled", "opcheck")


@pytest.mark.full
def test_a_host_function_in_a_capture_is_refused(project: Path) -> None:
    check(project, "captured")


@pytest.mark.full
def test_the_example_runs_without_host_addresses(project: Path) -> None:
    check(project, "forward", "gradients", **{f"{ENV_PREFIX}_SIMULATOR_HOST_ADDRESS": "0"})


@pytest.mark.full
def test_setuptools_can_build_the_example(tmp_path: Path) -> None:
    folder = tmp_path / "extension"
    shutil.copytree(EXAMPLES / "extension", folder)
    run(sys.executable, "setup.py", "build_ext", "--inplace", cwd=folder)
    check(folder, "forward", "gradients")
