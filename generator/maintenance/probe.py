"""Asks PyTorch itself, in a new interpreter that loads no backend."""

from __future__ import annotations

import os
import subprocess
import sys


def ask_torch(code: str) -> str:
    """Return what ``code`` prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout
