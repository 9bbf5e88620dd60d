"""The device without one of its optional groups, for a process that a test starts."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from backend import DEVICE


def without_group(group: str, folder: Path) -> dict[str, str]:
    """Compile, into ``folder``, a library that takes the group's functions from the device's table.

    Returns:
        The environment in which a process loads it.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    device, table = f"lib{DEVICE}_device.so", f"{DEVICE}_device_table"
    try:
        ctypes.CDLL(device, mode=os.RTLD_NOLOAD)
    except OSError:
        pytest.skip(f"the device library is not {device}")
    library = folder / f"without_{group}.so"
    source = Path(__file__).with_suffix(".cpp")
    names = {
        "DEVICE_LIBRARY": f'"{device}"',
        "DEVICE_TABLE": table,
        "DEVICE_TABLE_NAME": f'"{table}"',
        "MISSING_GROUP": group,
    }
    command: list[str | Path] = [
        *(compiler, "-std=c++20", "-shared", "-fPIC"),
        *("-I", source.parents[1] / "device" / "include"),
        *(f"-D{name}={value}" for name, value in names.items()),
        *(source, "-o", library, "-ldl"),
    ]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))}
