"""A second process that uses the device."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import device_library
import pytest

PROGRAM = Path(__file__).with_name("other_program.py")


class RemoteError(Exception):
    """A DeviceError of the other process."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Other:
    """A new process with the device's functions."""

    def __init__(self, api: ModuleType, **environment: str) -> None:
        module_folder = str(Path(api.__file__ or "").parent)
        folders = [module_folder, str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, **values: object) -> None:
        """Runs statements in the other process, with the values as variables."""
        self._send(code, values, is_question=False)

    def ask(self, expression: str, **values: object) -> Any:
        """The value of an expression in the other process."""
        return self._send(expression, values, is_question=True)

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _send(self, code: str, values: dict[str, object], *, is_question: bool) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"code": code, "values": values, "is_question": is_question}
        watchdog = threading.Timer(60, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, f"the process ended or hung: {code}"
        answer = json.loads(line)
        if "error" in answer:
            raise RemoteError(answer["error"], answer["code"])
        return answer["value"]


@contextmanager
def refused(api: ModuleType, says: str, code: str = "INVALID_ARGUMENT") -> Iterator[None]:
    """Asserts that the call throws this code, and on the simulator this text."""
    with pytest.raises((api.DeviceError, RemoteError)) as caught:
        yield
    assert getattr(caught.value.code, "name", caught.value.code) == code
    if device_library.DEVICE == "simulator" and not device_library.LIBRARY:
        assert re.search(says, str(caught.value))
