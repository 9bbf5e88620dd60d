"""The kernels of `device new --text cuda`, compiled with the host's compiler."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from commanding import succeed
from maintenance.installing import Installed
from rendering import ROOT

pytestmark = [pytest.mark.xdist_group("texts"), pytest.mark.nightly]

HOST_CUDA = Path(__file__).parent / "host_cuda"
INCLUDES = f"""
#include <dlfcn.h>
#include <stdlib.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#define HOST_CUDA "{HOST_CUDA}"
using Size = std::array<unsigned, 3>;
"""


UNSUPPORTED = """[unsupported]
"convolution dtype=complex128|complex64" = "complex numbers"
"matmul dtype=complex128|complex64" = "complex numbers"
"random dtype=complex128|complex64" = "complex numbers"
"ternary op=dirichlet_grad" = "operation"
"""


def write_functions(text: str) -> str:
    """Return text.cpp with its two functions written, and with teams of few threads."""
    functions = [(HOST_CUDA / "functions.cpp").read_text("utf-8"), ""]
    text, count = re.subn(
        r"^void\*? (compile|run)\(.*\n  throw .*\n\}\n",
        lambda _: functions.pop(0),
        text,
        flags=re.M,
    )
    assert count == 2
    assert "size_t team_size() { return 64; }" in text
    text = text.replace("size_t team_size() { return 64; }", "size_t team_size() { return 16; }")
    return INCLUDES + text


# Without optimizer_step, whose barrier is one of 256 host threads.
@pytest.mark.parametrize(
    "family",
    [
        "compact",
        "convolution",
        "copy",
        "gather",
        "matmul",
        "normalize",
        "pool",
        "random",
        "reduce",
        "scan",
        "softmax",
        "sort",
        "ternary",
    ],
)
def test_cuda_kernel_texts_pass_the_conformance_tests(
    family: str, install: Callable[..., Installed]
) -> None:
    def add_device(project: Path) -> None:
        command = (
            sys.executable,
            "-m",
            "torchsmith.cli",
            "device",
            "new",
            "acme",
            "--text",
            "cuda",
        )
        succeed(*command, cwd=project, PYTHONPATH=str(ROOT / "generator"))
        text = project / "device" / "acme" / "text.cpp"
        text.write_text(write_functions(text.read_text("utf-8")), "utf-8")
        (project / "device" / "acme" / "support.toml").write_text(UNSUPPORTED)

    project = install("texts", add_device, features=["kernel_texts", "device_tests"])
    tests = f"device/tests/kernels/test_{family}.py"
    done = project.run("-m", "pytest", "-q", "-p", "no:cacheprovider", tests, FOO_DEVICE="acme")
    assert done.returncode == 0, done.stdout[-6000:]
