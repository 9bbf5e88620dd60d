"""Starts Python processes quickly: they are forked from one that has imported PyTorch."""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import CodeType

SECONDS = 120
"""The time after which a process is killed."""


class ForkServer:
    """A process that imports PyTorch without a backend, and then forks a child for each program."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from fork_server import serve; exec(serve())"],
            env={**environment, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.terminate)

    def changed(self, environment: dict[str, str]) -> set[str]:
        """Return the names of the variables that differ from the server's."""
        return {name for name, _ in environment.items() ^ self._environment.items()}

    def run(self, code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a program in a child, and return its exit status and output.

        Only variables that ``import torch`` does not read may differ from the server's.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            outputs = [Path(folder) / name for name in ("stdout", "stderr")]
            request = [code, environment, os.getcwd(), *map(str, outputs)]
            print(json.dumps(request), file=self._process.stdin, flush=True)
            status = int(self._process.stdout.readline())
            return subprocess.CompletedProcess(code, status, *map(Path.read_text, outputs))


def serve() -> CodeType:
    """Fork a child for each request on the standard input. Return its program in the child."""
    import torch

    gc.freeze()  # a child that ends then does not search PyTorch's objects for cycles
    with contextlib.suppress(KeyboardInterrupt):
        for request in iter(sys.stdin.readline, ""):
            code, environment, folder, *outputs = json.loads(request)
            child = os.fork()
            if child == 0:
                for target, path in enumerate((os.devnull, *outputs)):
                    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), target)
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(environment)
                if torch._is_device_backend_autoload_enabled():
                    torch._import_device_backends()
                return compile(code, "<string>", "exec")
            ended = os.pidfd_open(child)
            if not select.select([ended], [], [], SECONDS)[0]:
                os.kill(child, signal.SIGKILL)
            os.close(ended)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()
