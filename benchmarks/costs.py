"""Measures the time of commands."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintenance.installing import BIN, make_environment


@dataclass(frozen=True)
class Cost:
    """Seconds of a command: wall time, CPU time, and CPU time in user mode."""

    wall: float
    cpu: float
    user: float


def cost_of(command: list[str], **environment: str) -> Cost:
    """Run a command and return its seconds, including its children's."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment},
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return Cost(wall, user + after.ru_stime - before.ru_stime, user)


def printed(
    program: Path, python: Path, *arguments: str, folder: Path | None = None, **environment: str
) -> Any:
    """Run a program, in a folder if one is named, and return the JSON that it prints."""
    done = subprocess.run(
        [str(python), str(program), *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)


def environment(folder: Path, package: str) -> Path:
    """Install a package into an environment with this one's packages, and return its `bin`."""
    python = make_environment(folder, Path(sysconfig.get_path("purelib")))
    cost_of([
        sys.executable, "-m", "pip", "--python", str(python), "install",
        "--no-build-isolation", "--no-deps", "--force-reinstall", package,
    ])  # fmt: skip
    return python.parent
