"""Runs of the `torchsmith` command: how they end, as the tests see it, and how they start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rendering import ROOT, Renderer


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it reported."""
        return json.loads(self.out)


Torchsmith = Callable[..., Ended]


def new(render: Renderer, *more: str) -> tuple[str, ...]:
    """Return the arguments that render torch-acme, the core alone."""
    return ("new", "torch-acme", "--template", str(render.template), "-d", "preset=minimal", *more)


def run_python(
    *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python of its own on this tree's code, with nobody at the terminal."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator"), **variables},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def start_python(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start the same in a group of its own, which Ctrl-C goes to."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
