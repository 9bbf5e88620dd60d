"""A changed table of device functions, for processes that tests start."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from backend import DEVICE

HERE = Path(__file__).parent


def changed_device(source: Path, folder: Path, **names: str) -> dict[str, str]:
    """Compile a library that is loaded before the device library and replaces its table.

    Args:
        source: a C++ file. It defines the function that the macro ``DEVICE_TABLE`` names, as
            ``device_without_group.cpp`` does, and includes ``original_table.h``.
        folder: where the compiled library goes.
        names: additional macros.

    Returns:
        The environment of a process that uses the changed table.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    device, table = f"lib{DEVICE}_device.so", f"{DEVICE}_device_table"
    try:
        ctypes.CDLL(device, mode=os.RTLD_NOLOAD)
    except OSError:
        pytest.skip(f"the device library is not {device}")
    library = folder / f"{source.stem}.so"
    macros = {
        "DEVICE_LIBRARY": f'"{device}"',
        "DEVICE_TABLE": table,
        "DEVICE_TABLE_NAME": f'"{table}"',
        **names,
    }
    command: list[str | Path] = [
        *(compiler, "-std=c++20", "-shared", "-fPIC", "-I", HERE),
        *("-I", HERE.parent / "device" / "include"),
        *(f"-D{name}={value}" for name, value in macros.items()),
        *(source, "-o", library, "-ldl"),
    ]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))}


def without_group(group: str, folder: Path) -> dict[str, str]:
    """Return the environment in which the device lacks one of its optional groups."""
    return changed_device(HERE / "device_without_group.cpp", folder, MISSING_GROUP=f'"{group}"')
