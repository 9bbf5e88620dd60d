"""``torchrun`` and its processes, which all end with the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

from backend import ENV_PREFIX
from support import EXAMPLES

TIMEOUT = 120
"""Seconds after which a run is killed."""


class Run:
    def __init__(
        self, words: Sequence[str], before: Sequence[str], settings: dict[str, str]
    ) -> None:
        own = {"OMP_NUM_THREADS": "1", f"{ENV_PREFIX}_FALLBACK": "silent", **settings}
        self.agent = subprocess.Popen(
            [*before, sys.executable, "-m", "torch.distributed.run", *words],
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output = ""
        self.timer = Timer(TIMEOUT, self.kill)
        self.timer.start()

    def workers(self) -> list[int]:
        """Return the process ids of the ranks."""
        pid = self.agent.pid
        with suppress(FileNotFoundError):
            return [
                int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            ]
        return []

    def until(self, text: str) -> None:
        """Wait for a line that contains ``text``.

        Raises:
            AssertionError: the run has ended without it.
        """
        assert self.agent.stdout is not None
        for line in self.agent.stdout:
            self.output += line
            if text in line:
                return
        raise AssertionError(f"there is no '{text}' in\n{self.output}")

    def end(self) -> str:
        """Wait for the run to succeed, and return its whole output."""
        assert self.agent.stdout is not None
        self.output += self.agent.stdout.read()
        assert self.agent.wait() == 0, self.output
        return self.output

    def kill(self) -> None:
        """Kill the agent and the ranks, as if the machine stopped."""
        if self.agent.poll() is not None:
            return
        # The stopped agent starts no ranks while they are listed.
        self.agent.send_signal(signal.SIGSTOP)
        for pid in (*self.workers(), self.agent.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.agent.wait()


@contextmanager
def torchrun(
    *words: str, before: Sequence[str] = (), settings: dict[str, str] | None = None
) -> Iterator[Run]:
    """Start ``torchrun`` with ``words``, after the command prefix ``before``."""
    run = Run(words, before, settings or {})
    try:
        yield run
    finally:
        run.timer.cancel()
        run.kill()
        assert run.agent.stdout is not None
        run.agent.stdout.close()


def on_one_machine(processes: int, folder: Path, *words: str) -> list[str]:
    """Return the arguments to train the sharded GPT here, with checkpoints in ``folder``."""
    return ["--standalone", "--nproc-per-node", str(processes), *words, *training(folder)]


STEPS, EVERY = 60, 5


def training(folder: Path) -> list[str]:
    script = str(EXAMPLES / "gpt_sharded.py")
    return [script, "--steps", str(STEPS), "--every", str(EVERY), "--checkpoints", str(folder)]
