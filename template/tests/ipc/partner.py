"""Another process that does what it is told, and is gone at the end of the test."""

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
    """What the other process raised."""


@functools.cache
def context() -> ForkServerContext:
    """Return how processes are started: without what this one has, and with torch imported."""
    result: ForkServerContext = get_context("forkserver")
    result.set_forkserver_preload(["torch"])
    return result


class Partner:
    """A process that calls functions, which must be a module's, and answers with their results."""

    def __init__(self) -> None:
        self.connection, theirs = context().Pipe()
        self._process = context().Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``function(*arguments)`` gives there; raise RemoteError for what it raises."""
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
        """End the process as it stands."""
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
        # What the arguments use is given up before the answer says that it is done.
        del function, arguments
        connection.send(answer)
        del answer
