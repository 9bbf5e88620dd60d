"""Another process that calls functions for a test, and ends with the test."""

from __future__ import annotations

import functools
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

TIMEOUT = 60.0


class RemoteError(RuntimeError):
    """An exception of the other process."""


@functools.cache
def context() -> ForkServerContext:
    """Return a start context: processes inherit nothing from this one, and have torch imported."""
    result: ForkServerContext = get_context("forkserver")
    result.set_forkserver_preload(["torch"])
    return result


class Partner:
    """A process that calls functions of modules, and sends back their results."""

    def __init__(self) -> None:
        self.connection, theirs = context().Pipe()
        self._process = context().Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the other process's ``function(*arguments)``, or raise RemoteError."""
        self.connection.send((function, arguments))
        return self.answer()

    def answer(self) -> Any:
        """Return the next answer."""
        if not self.connection.poll(TIMEOUT):
            raise TimeoutError(f"no answer in {TIMEOUT} seconds")
        failure, result = self.connection.recv()
        if failure is not None:
            raise RemoteError(failure)
        return result

    def kill(self) -> None:
        """Kill the process."""
        if self._process.pid is not None and self._process.exitcode is None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.join(TIMEOUT)

    def close(self) -> None:
        self.kill()
        self.connection.close()


def _serve(connection: Connection) -> None:
    while True:
        function, arguments = None, ()
        answer: tuple[str | None, Any]
        try:
            function, arguments = connection.recv()
            answer = (None, function(*arguments))
        except EOFError:
            return
        except Exception:
            answer = (traceback.format_exc(), None)
        # Free the memory of the arguments before the answer.
        del function, arguments
        connection.send(answer)
        del answer
