"""A terminal for a command: its screen and its keyboard."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pyte

from rendering import ROOT

LINES = 50
LONGEST = 60
"""Seconds after which a wait fails."""
QUIET = 0.3
"""Seconds without output after which a screen counts as complete."""


class _Screen(pyte.Screen):
    """Answers queries of the cursor's position, as terminals do."""

    terminal = 0

    def write_process_input(self, data: str) -> None:
        """Write the answer."""
        os.write(self.terminal, data.encode())


class Terminal:
    """Runs `torchsmith` at a terminal."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        columns: int = 80,
        lines: int = LINES,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start it."""
        self.screen = _Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "torchsmith", *arguments],
            cwd=cwd,
            env={
                **{key: value for key, value in os.environ.items() if key != "COLUMNS"},
                **(variables or {}),
                "PYTHONPATH": str(ROOT / "generator"),
                "TERM": "xterm",
            },
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.screen.terminal = self._ours

    @property
    def lines(self) -> list[str]:
        """Return the lines of the screen."""
        return [line.rstrip() for line in self.screen.display]

    def wait_for(self, words: str) -> list[str]:
        """Wait until the screen shows some words, and return its lines.

        Keys that are typed before a question is shown are lost.
        """
        end = time.monotonic() + LONGEST
        while words not in "\n".join(self.lines):
            assert time.monotonic() < end, self.lines
            assert self._read(), self.lines
        while select.select([self._ours], [], [], QUIET)[0] and self._read():
            pass  # until the whole screen is shown
        return self.lines

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._ours, keys.encode())

    def answer(self, words: str, keys: str) -> list[str]:
        """Wait until the screen shows some words, type keys, and return what it showed."""
        shown = self.wait_for(words)
        self.type(keys)
        return shown

    def end(self) -> int:
        """Wait for the end of the command, and return its status."""
        while self._read():
            pass
        os.close(self._ours)
        return self._process.wait(LONGEST)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], LONGEST)[0]:
            return False
        try:
            some = os.read(self._ours, 1 << 16)
        except OSError:  # Linux raises it when the other side has ended
            return False
        self._stream.feed(some)
        return bool(some)
