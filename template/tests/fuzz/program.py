"""Programs of the fuzzer: lists of Python statements that run on the CPU and on the devices.

A statement is its text. The same text is generated, run, shortened and printed, and any statement
can be left out: a statement that lacks a variable does nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from backend import DEVICE, backend

NAMES = re.compile(r"\bv\d+\b")
TARGETS = re.compile(r"((?:v\d+, )*v\d+) = ")


@dataclass(frozen=True)
class Statement:
    """One line. ``terms``: the number of summands of an element of the result; 0 for an exact
    result, 1 for one that is rounded once or a few times.
    """

    code: str
    terms: int = 0

    @property
    def names(self) -> list[str]:
        """Return the variables in the line, each once."""
        return list(dict.fromkeys(NAMES.findall(self.code)))

    @property
    def targets(self) -> list[str]:
        """Return the variables that it assigns."""
        match = TARGETS.match(self.code)
        return match[1].split(", ") if match else []

    @property
    def writes(self) -> list[str]:
        """Return the variables whose memory it may change: all that it names."""
        return [] if self.targets or self.code.startswith(("del ", "switch(")) else self.names


@dataclass(frozen=True)
class Program:
    """Statements, and the number of them after which the program waits for the devices."""

    statements: tuple[Statement, ...]
    batch: int = 1

    def text(self, reason: str) -> str:
        """Return a script that prints the last statement's results of the CPU and the devices."""
        last = self.statements[-1]
        shown = ", ".join(last.targets or last.writes)
        other = 1 if backend.device_count() > 1 else 0
        lines = ["import torch", ""]
        if any(statement.code.startswith("switch(") for statement in self.statements):
            lines += [SWITCH.replace("BACKEND", f"torch.{DEVICE}"), ""]
        lines += ["", "def program(d0, d1):"]
        lines += [f"    {statement.code}" for statement in self.statements]
        lines += [f"    return [{shown}]", "", ""]
        lines += [f"# {line}".rstrip() for line in reason.splitlines()]
        lines += [
            'print(program("cpu", "cpu"))',
            f'print(program("{DEVICE}:0", "{DEVICE}:{other}"))',
        ]
        return "\n".join(lines) + "\n"


SWITCH = '''
streams = {}


def switch(device, number):
    """Switch to another stream of a device, after the work of the current one."""
    if device != "cpu":
        present = BACKEND.current_stream(device)
        streams.setdefault((device, 0), present)
        if (device, number) not in streams:
            streams[device, number] = BACKEND.Stream(device)
        streams[device, number].wait_stream(present)
        BACKEND.set_stream(streams[device, number])
'''.strip()


def namespace(first: str, second: str) -> dict[str, Any]:
    """Return the names that statements can use besides their variables."""
    names: dict[str, Any] = {"torch": torch, "d0": first, "d1": second}
    exec(SWITCH.replace("BACKEND", f"torch.{DEVICE}"), names)
    return names
