"""Builds and runs the programs of this folder, which test the headers of device/shared."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

HERE = Path(__file__).parent
# Each program with its sanitizers and its checks.
PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "address_space": (("", "thread"), ("places", "erasing", "threads")),
    "command_lists": (
        ("", "thread"),
        ("submitting", "room", "interrupted", "waiting", "events", "host_functions", "threads"),
    ),
    "compiled_kernels": (("", "thread"), ("keys", "threads", "failing")),
    "contiguous": (("", "address,undefined"), ("copies", "orders", "declining")),
    "kernel_arrays": (("", "address,undefined"), ("arrays", "types", "parts")),
    "line_copies": (("", "address"), ("found", "copied", "untouched", "ordered", "addressed")),
}
CASES = [
    pytest.param((name, sanitizer), check, marks=[pytest.mark.full] if sanitizer else [])
    for name, (sanitizers, checks) in PROGRAMS.items()
    for sanitizer in sanitizers
    for check in checks
]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Compiles a program, with a sanitizer or without."""

    @functools.cache
    def compile_file(name: str, sanitizer: str) -> Path:
        program = tmp_path_factory.mktemp("shared") / name
        root = device_library.DEVICE_ROOT
        command = [
            *(os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-g", "-Wall", "-Wextra"),
            *("-Werror", "-pthread", f"-I{root}", f"-I{root / 'include'}"),
            *([f"-fsanitize={sanitizer}"] if sanitizer else []),
            *(str(HERE / f"{name}.cpp"), "-o", str(program)),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if sanitizer and "cannot find" in done.stderr:
            pytest.skip(f"the compiler comes without the library of -fsanitize={sanitizer}")
        assert done.returncode == 0, done.stderr
        return program

    return compile_file


@pytest.mark.parametrize(("program", "check"), CASES, ids=str)
def test_all_expectations_of_a_check_hold(
    build: Callable[[str, str], Path], program: tuple[str, str], check: str
) -> None:
    done = subprocess.run([build(*program), check], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_address_of_an_address_space_cannot_be_dereferenced(
    build: Callable[[str, str], Path],
) -> None:
    done = subprocess.run([build("address_space", ""), "follow"], capture_output=True)
    assert done.returncode == -signal.SIGSEGV
