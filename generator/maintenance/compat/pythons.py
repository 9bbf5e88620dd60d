"""Checks that a rendered package works with every supported Python version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torchsmith import catalog


def mypy_problems(project: Path, cache: Path) -> list[str]:
    """Return mypy's errors in the package for each version, without PyTorch's types."""
    found = []
    for version in catalog.torch_window()["python"]:
        done = subprocess.run(
            [sys.executable, "-m", "mypy", f"--config-file={os.devnull}", "--no-error-summary",
             f"--python-version={version}", "--follow-imports=skip", "--ignore-missing-imports",
             f"--cache-dir={cache}", "python"],
            cwd=project,
            capture_output=True,
            text=True,
        )  # fmt: skip
        if done.returncode:
            lines = (done.stdout + done.stderr).splitlines()
            found += [f"Python {version}: {line}" for line in lines]
    return found
