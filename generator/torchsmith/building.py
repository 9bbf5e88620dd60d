"""Building, installing and testing a rendered project, as its owner would."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections import deque
from collections.abc import Callable
from pathlib import Path

from torchsmith.doctor import toolchain
from torchsmith.errors import InputError

_PROGRESS = re.compile(r"\[\s*(\d+/\d+|\d+%)\]")


class StepError(Exception):
    """A step failed; its text ends with what the step said last."""


def require_tools(python: str) -> None:
    """Refuse to start what cannot be finished.

    Raises:
        InputError: The first problem, with its fix.
    """
    for finding in toolchain(python):
        if finding.status == "problem":
            raise InputError(
                f"it cannot be built here: {finding.check} {finding.found}: {finding.fix}"
            )


def install(project: Path, python: str, progress: Callable[[str], None]) -> None:
    """Build the project and install it, with what its tests need, into ``python``'s environment.

    Raises:
        StepError: The build failed.
    """
    command = [python, "-m", "pip", "install", "--verbose", "--no-build-isolation", ".[test]"]
    _run(command, project, python, progress)


def test(project: Path, python: str, progress: Callable[[str], None]) -> str:
    """Run the project's tests and return pytest's last line.

    Raises:
        StepError: Some failed.
    """
    return _run([python, "-m", "pytest", "--color=no"], project, python, progress)


def _run(command: list[str], folder: Path, python: str, progress: Callable[[str], None]) -> str:
    """Run a command, tell how far it is, and return the last line that it printed."""
    # Tools that came with pip stand beside Python, which need not be on the user's PATH.
    paths = [str(Path(python).absolute().parent), sysconfig.get_path("scripts"), os.environ["PATH"]]
    last: deque[str] = deque([""], maxlen=60)
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip():
                last.append(line.rstrip())
            if found := _PROGRESS.search(line):
                progress(found[1])
    if process.returncode:
        raise StepError("\n".join(last))
    return last[-1].strip("= ")
