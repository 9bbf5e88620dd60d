"""Reads known.toml: divergences with a reason, each with a program that must show it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from fuzz.program import Program, Statement
from fuzz.session import Divergence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Entry:
    """One divergence: patterns of its statement and of its description, a reason, and a program.

    If CPUs differ, ``gives`` is the program's result on the device.
    """

    statement: str
    what: str
    reason: str
    program: str
    gives: str = ""

    def matches(self, found: Divergence) -> bool:
        return bool(
            re.search(self.statement, found.statement.code) and re.search(self.what, found.what)
        )

    def as_program(self) -> Program:
        return Program(tuple(Statement(line) for line in self.program.strip().splitlines()))


class Known:
    """The list, or one without entries."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    @classmethod
    def read(cls) -> Known:
        """Return what is in known.toml."""
        document = tomllib.loads(Path(__file__).with_name("known.toml").read_text("utf-8"))
        return cls([Entry(**entry) for entry in document.get("divergence", [])])

    def has(self, found: Divergence) -> bool:
        """Whether a divergence is listed."""
        return any(entry.matches(found) for entry in self.entries)
