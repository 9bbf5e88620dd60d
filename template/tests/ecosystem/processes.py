"""Processes of one training, each with its own device, started by ``torchrun``."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from backend import ENV_PREFIX, PACKAGE

TIMEOUT = 500
"""Seconds. Imports and compilations of the libraries take most of them."""

has_collectives = pytest.mark.skipif(
    find_spec(f"{PACKAGE}.distributed") is None,
    reason="the backend was generated without collectives",
)


def launch(
    program: list[str],
    *,
    processes: int = 2,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run a script, or ``-m`` and a module, with its arguments, and return the joined output.

    If a process fails, the test fails. Fallbacks do not warn.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={processes}", *program),
        ],
        env={
            **os.environ,
            f"{ENV_PREFIX}_FALLBACK": "silent",
            **(environment or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
