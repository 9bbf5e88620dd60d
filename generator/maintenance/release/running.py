"""Runs the commands of a rehearsal, in new virtual environments."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torchsmith.errors import InputError

_SHOWN = 4000


def run(
    *command: str | Path, cwd: Path | None = None, variables: dict[str, str] | None = None
) -> str:
    """Run a command and return what it printed.

    Raises:
        InputError: It failed; the message has the end of the output.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise InputError(f"this failed: {shlex.join(words)}\n{done.stdout[-_SHOWN:].rstrip()}")
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """The variables that make it the current environment."""
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}

    def run(
        self, *command: str | Path, cwd: Path | None = None, variables: dict[str, str] | None = None
    ) -> str:
        """Run a command in this environment."""
        return run(
            *command, cwd=cwd or self.folder, variables={**self.variables, **(variables or {})}
        )

    def install(self, *arguments: str | Path) -> None:
        """Install packages with pip."""
        self.run(self.python, "-m", "pip", "install", "--quiet", *arguments)


def make_environment(folder: Path) -> Environment:
    """Create an environment with only pip in it."""
    run(sys.executable, "-m", "venv", "--clear", folder)
    return Environment(folder)
