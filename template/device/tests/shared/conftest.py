"""Builds programs of one C++ file that test the headers of device/shared."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import device_library
import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a file of this folder, with a sanitizer or without, and returns the program."""

    def compile_file(name: str, sanitizer: str = "") -> Path:
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


@pytest.fixture(scope="session")
def passes() -> Callable[[Path, str], None]:
    """Runs a program's check, which prints a line for each failure."""

    def run_check(program: Path, check: str) -> None:
        done = subprocess.run([program, check], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    return run_check
