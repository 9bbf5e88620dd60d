"""Declarations about PyTorch's own tests: skipped tests, expected failures, tolerances, and classes
that run on this device although PyTorch restricts them to other devices.

They are tables of known.toml, and of tests/operators/pytorch.toml, which belongs to the project.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).resolve().parents[1]
KNOWN = (TESTS / "pytorch" / "known.toml", TESTS / "operators" / "pytorch.toml")
"""The template's entries, and an optional file of the project."""

TABLES = ("skip", "xfail", "tolerance", "bypass")
NAMES = ("classes", "tests", "operators", "dtypes")
"""The keys that select tests within the files of an entry."""
NUMBERS = ("absolute", "relative")
RELEASES = ("since", "until")
OPTIONS = ("files", *NAMES, "reason", "issue", *RELEASES)

Release = tuple[int, int]


class Mistake(Exception):
    """A mistake of the user. The message is one sentence."""


@dataclass(frozen=True)
class Case:
    """One test as PyTorch created it for this device.

    ``name`` contains operator, device and dtype; ``template`` is the name of the test function.
    """

    file: str
    group: str
    template: str
    name: str
    operator: str = ""
    dtypes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Class and name, unique within the file."""
        return f"{self.group}::{self.name}"

    def values(self, field_name: str) -> tuple[str, ...]:
        """Return the values that patterns of one of ``NAMES`` are compared with."""
        return {
            "classes": (self.group,),
            "tests": (self.template, self.name),
            "operators": (self.operator,),
            "dtypes": self.dtypes,
        }[field_name]


@dataclass(frozen=True)
class Entry:
    """One entry. Without patterns for a name it applies to all."""

    table: str
    place: str
    files: tuple[str, ...]
    reason: str
    classes: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    issue: str = ""
    since: Release | None = None
    until: Release | None = None
    absolute: float = 0.0
    relative: float = 0.0

    def is_of(self, release: Release) -> bool:
        """Whether the entry applies to this release of PyTorch."""
        return (self.since or release) <= release and (self.until is None or release < self.until)

    def is_whole_file(self) -> bool:
        """Whether the entry skips whole files without importing them."""
        return self.table == "skip" and not any(getattr(self, name) for name in NAMES)

    def is_of_wheel(self) -> bool:
        """Whether the entry is about tests/pytorch/wheel, which runs without PyTorch's sources."""
        return all(pattern.startswith("wheel/") for pattern in self.files)

    def is_about_file(self, file: str) -> bool:
        """Whether a pattern of the entry matches a file's path below ``test/``."""
        return any(fnmatchcase(file, pattern) for pattern in self.files)

    def hits(self, test: Case) -> list[tuple[str, str]]:
        """Return the patterns that match a test as (name, pattern); none if a name has no match."""
        if not self.is_about_file(test.file):
            return []
        found = [("files", pattern) for pattern in self.files if fnmatchcase(test.file, pattern)]
        for name in NAMES:
            patterns = getattr(self, name)
            fitting = [
                (name, pattern)
                for pattern in patterns
                if any(fnmatchcase(value, pattern) for value in test.values(name))
            ]
            if patterns and not fitting:
                return []
            found += fitting
        return found


def release_of(text: str) -> Release:
    """Return ``(2, 13)`` for "2.13" or any version of it."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _strings(value: Any, key: str, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise Mistake(f"{place}: '{key}' is {value!r}, and must be a list of strings")
    return tuple(value)


def _entry(table: str, place: str, raw: Any) -> Entry:
    """Read one entry.

    Raises:
        Mistake: It has an unknown key or a wrong value.
    """
    allowed = OPTIONS + (NUMBERS if table == "tolerance" else ())
    for key in raw:
        if key not in allowed:
            raise Mistake(f"{place}: there is no key '{key}'; there are {', '.join(allowed)}")
    for key in ("files", "reason"):
        if not raw.get(key):
            raise Mistake(f"{place}: '{key}' is missing")
    values: dict[str, Any] = {}
    for key, value in raw.items():
        if key in ("files", *NAMES):
            values[key] = _strings(value, key, place)
        elif key in NUMBERS:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise Mistake(f"{place}: '{key}' is {value!r}, and must be a number from 0")
            values[key] = float(value)
        elif not isinstance(value, str):
            raise Mistake(f"{place}: '{key}' is {value!r}, and must be a string")
        elif key in RELEASES:
            if not re.fullmatch(r"\d+\.\d+", value):
                raise Mistake(f"{place}: '{key}' is '{value}', and must be a release such as 2.14")
            values[key] = release_of(value)
        else:
            values[key] = value
    if table == "tolerance" and not any(key in raw for key in NUMBERS):
        raise Mistake(f"{place}: a tolerance needs 'absolute', 'relative' or both")
    return Entry(table=table, place=place, **values)


def read(paths: Iterable[Path] = KNOWN) -> list[Entry]:
    """Return the entries of all files that exist.

    Raises:
        Mistake: A file is not TOML, or an entry is wrong.
    """
    entries = []
    for path in paths:
        if not path.is_file():
            continue
        try:
            document = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise Mistake(f"{path.name} is not TOML: {error}") from error
        for table, rows in document.items():
            if table not in TABLES or not isinstance(rows, list):
                raise Mistake(
                    f"{path.name}: there is no table [[{table}]]; there are {', '.join(TABLES)}"
                )
            for number, raw in enumerate(rows, 1):
                entries.append(_entry(table, f"{path.name}, [[{table}]] number {number}", raw))
    return entries


@dataclass
class Expectations:
    """The entries for one release of PyTorch, and which of them have matched a test."""

    entries: list[Entry]
    release: Release
    met: set[tuple[str, str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.entries = [entry for entry in self.entries if entry.is_of(self.release)]

    def of(self, test: Case, table: str) -> Iterator[Entry]:
        """Yield the entries of a table that match a test."""
        for entry in self.entries:
            if entry.table == table and (found := entry.hits(test)):
                self.met.update((entry.place, *pattern) for pattern in found)
                yield entry

    def left_out(self, file: str) -> str:
        """Return why a whole file is skipped, or an empty string."""
        for entry in self.entries:
            if entry.is_whole_file() and entry.is_about_file(file):
                return entry.reason
        return ""

    def lifts(self, file: str, group: str) -> bool:
        """Whether a class, or a test of it, runs although PyTorch restricts it to other devices."""
        return any(
            entry.table == "bypass"
            and entry.is_about_file(file)
            and any(fnmatchcase(group, pattern) for pattern in entry.classes or ("*",))
            for entry in self.entries
        )

    def stale(self, files: list[str], complete: set[str]) -> list[str]:
        """Return a sentence for each pattern that matches nothing, if all its files were examined.

        Args:
            files: All files of this PyTorch, or of tests/pytorch/wheel.
            complete: The files whose tests are all known.
        """
        sentences = []
        without_sources = all(file.startswith("wheel/") for file in files)
        for entry in self.entries:
            if entry.is_of_wheel() != without_sources:
                continue
            mine = {file for file in files if entry.is_about_file(file)}
            if not mine:
                sentences.append(f"{entry.place}: no file is called {' or '.join(entry.files)}")
            elif not entry.is_whole_file() and mine <= complete:
                sentences += [
                    f"{entry.place}: '{pattern}' of '{name}' fits no test"
                    for name in NAMES
                    for pattern in getattr(entry, name) or ()
                    if (entry.place, name, pattern) not in self.met
                ]
        return sentences


def arrived(entries: Iterable[Entry], oldest: Release) -> list[str]:
    """Return a sentence for each entry that no supported PyTorch needs: all have reached its
    ``until``.
    """
    return [
        f"{entry.place}: every PyTorch of this project is {'.'.join(map(str, entry.until))} or newer"
        for entry in entries
        if entry.until is not None and entry.until <= oldest
    ]
