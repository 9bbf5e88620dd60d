"""A second process that uses the device, and numbers that both have."""

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
import numpy as np
import pytest

SIZE = 4000
COUNT = np.arange(1000, dtype=np.int32)

# What the other process does: it runs the code of each line that it is sent, and answers with a line.
SERVER = """
import json, sys, threading
import numpy as np
import _device as api

def add(stream, address, number, size=1000):
    view = api.View(address, api.DType.int32, size)
    assert api.binary(stream, api.BinaryOp.add, view, view, number, api.BinaryParams()) is None

def read(address, size=1000, device=0):
    numbers = np.empty(size, np.int32)
    api.copy_bytes(
        api.default_stream(device), (numbers.ctypes.data, api.HOST), (address, device), numbers.nbytes
    )
    return numbers.tolist()

def write(address, numbers, device=0):
    numbers = np.asarray(numbers, np.int32)
    api.copy_bytes(
        api.default_stream(device), (address, device), (numbers.ctypes.data, api.HOST), numbers.nbytes
    )

names = dict(globals())
for line in sys.stdin:
    request = json.loads(line)
    names.update(request["values"])
    try:
        if request["is_question"]:
            answer = {"value": eval(request["code"], names)}
        else:
            exec(request["code"], names)
            answer = {"value": None}
    except (api.DeviceError, MemoryError) as error:
        answer = {"error": str(error), "code": error.code.name}
    print(json.dumps(answer), flush=True)
"""


class RemoteError(Exception):
    """A DeviceError of the other process."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Other:
    """Another process with the device's functions, started afresh."""

    def __init__(self, api: ModuleType, **environment: str) -> None:
        module_folder = str(Path(api.__file__ or "").parent)
        path = os.pathsep.join([module_folder, os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, **values: object) -> None:
        """Runs statements there; the values are names there from then on."""
        self._send(code, values, is_question=False)

    def ask(self, expression: str, **values: object) -> Any:
        """What an expression is there."""
        return self._send(expression, values, is_question=True)

    def kill(self) -> None:
        """Ends the process, which is not reaped yet."""
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


def write(api: ModuleType, address: int, values: Any, device: int = 0) -> None:
    stream = api.default_stream(device)
    api.copy_bytes(stream, (address, device), (values.ctypes.data, api.HOST), values.nbytes)


def read(api: ModuleType, address: int, size: int = 1000, device: int = 0) -> Any:
    values = np.empty(size, np.int32)
    stream = api.default_stream(device)
    api.copy_bytes(stream, (values.ctypes.data, api.HOST), (address, device), values.nbytes)
    return values


def add(api: ModuleType, stream: Any, address: int, number: int, size: int = 1000) -> None:
    view = api.View(address, api.DType.int32, size)
    reason = api.binary(stream, api.BinaryOp.add, view, view, number, api.BinaryParams())
    if reason is not None:
        pytest.skip(f"the device does not add whole numbers: {reason}")


@contextmanager
def refused(api: ModuleType, says: str, code: str = "INVALID_ARGUMENT") -> Iterator[None]:
    """The call throws an error of this code, here or there; the sentence is the simulator's."""
    with pytest.raises((api.DeviceError, RemoteError)) as caught:
        yield
    assert getattr(caught.value.code, "name", caught.value.code) == code
    if device_library.DEVICE == "simulator" and not device_library.LIBRARY:
        assert re.search(says, str(caught.value))
