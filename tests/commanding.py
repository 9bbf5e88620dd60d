"""Runs the `torchsmith` command for tests, and checks how it ends."""

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
    """The status of a command, and its output."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return its JSON report."""
        return json.loads(self.out)

    def passed(self) -> Ended:
        """Check that it succeeded."""
        assert self.status == 0, self.out[-8000:] + self.err[-8000:]
        return self

    def refused(self, *words: str) -> str:
        """Check that it was refused in one sentence with these words, and return that sentence."""
        assert (self.status, self.out, self.err.count("\n")) == (2, "", 1), self
        assert self.err.startswith("torchsmith: ")
        assert [each for each in words if each not in self.err] == [], self.err
        return self.err.removeprefix("torchsmith: ").rstrip("\n")


Torchsmith = Callable[..., Ended]

BIN = Path(sys.executable).parent


def new(render: Renderer, *more: str) -> tuple[str, ...]:
    """Return the arguments that render torch-acme with only the core."""
    return ("new", "torch-acme", "--template", str(render.template), "-d", "preset=minimal", *more)


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> Ended:
    """Run a program without a terminal; this environment's programs come first on PATH."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **variables},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def succeed(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Run a program, which must succeed, and return its output."""
    return run(*command, cwd=cwd, **variables).passed().out


def fits(schema: str, *files: Path) -> None:
    """Check files against a schema of check-jsonschema's."""
    succeed("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)


def run_python(*arguments: str, cwd: Path | None = None, **variables: str) -> Ended:
    """Run Python in a new process with this tree's code."""
    variables = {"PYTHONPATH": str(ROOT / "generator"), **variables}
    return run(sys.executable, *arguments, cwd=cwd, **variables)


def start_python(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start Python in a process group of its own, which tests can interrupt."""
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
