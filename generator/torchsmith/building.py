"""Building, installing and testing a rendered project, as its users do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sysconfig
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from torchsmith.doctor import fixes, toolchain
from torchsmith.errors import InputError

_PROGRESS = re.compile(r"\[\s*(\d+/\d+|\d+%)\]")


class StepError(Exception):
    """A step failed; its text is the end of the step's output."""


def require_tools(python: str) -> None:
    """Check that all build tools are installed.

    Raises:
        InputError: At least one is missing.
    """
    problems = [finding for finding in toolchain(python) if finding.status == "problem"]
    if problems:
        found = ", ".join(f"{each.check} {each.found}" for each in problems)
        fix = "; then ".join(fix for _, fix in fixes(problems))
        raise InputError(f"the project cannot be built here: {found}: {fix}")


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
        StepError: At least one test failed.
    """
    return _run([python, "-m", "pytest", "-n", "auto", "--color=no"], project, python, progress)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and its children. SIGINT comes first: pip then removes its temporary files."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _run(command: list[str], folder: Path, python: str, progress: Callable[[str], None]) -> str:
    """Run a command, report its progress, and return the last line that it printed."""
    # Tools installed by pip are in the same folder as Python, which may not be on the user's PATH.
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
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.strip():
                    last.append(line.rstrip())
                if found := _PROGRESS.search(line):
                    progress(found[1])
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise StepError("\n".join(last))
    return last[-1].strip("= ")
