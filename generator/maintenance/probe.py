"""Runs code in a new interpreter that has PyTorch but loads no backend."""

from __future__ import annotations

import os
import subprocess
import sys


def ask_torch(code: str) -> str:
    """Run ``code`` and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout
