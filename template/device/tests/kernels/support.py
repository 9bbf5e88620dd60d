"""What the device under test says it does not do: its support.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import device_library

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Case:
    """What is asked of the device, in the words that support.toml uses."""

    family: str
    op: str = "-"
    dtype: str = "-"
    layout: str = "-"
    # What the family got: its arrays' sizes and whole numbers such as a dimension, as in "17x33 17x33 1".
    sizes: str = "-"
    # "deterministic" or "free" where the device answers otherwise if it may give other bits.
    mode: str = "-"

    @property
    def fields(self) -> tuple[str, ...]:
        """What globs are matched with."""
        return (self.family, self.op, self.dtype, self.layout, self.sizes, self.mode)

    def __str__(self) -> str:
        return " ".join(self.fields)


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    answer: str | None = None  # None if the device does it, otherwise its reason
    ulp: float = 0.0  # the largest error, where results are compared in ulp
    failed: bool = False


# A glob, or several of which the last one that matches counts; behind a "!" it says no.
Globs = tuple[str, ...]


def _matches(value: str, globs: Globs) -> bool:
    says = [not glob.startswith("!") for glob in globs if fnmatchcase(value, glob.lstrip("!"))]
    return bool(says) and says[-1]


@dataclass(frozen=True)
class Entry:
    """One line of a list in support.toml."""

    family: Globs
    op: Globs
    dtype: Globs
    layout: Globs
    sizes: Globs
    mode: Globs
    reason: str
    ulp: float | None = None
    note: str = ""  # the reason in words of yours; `reason` is the device's own

    def __str__(self) -> str:
        return " ".join(",".join(globs) for globs in self.patterns)

    @property
    def patterns(self) -> tuple[Globs, ...]:
        """The globs, in the order of a case's fields."""
        return (self.family, self.op, self.dtype, self.layout, self.sizes, self.mode)

    def matches(self, case: Case) -> bool:
        """Whether the entry is about this case."""
        return all(map(_matches, case.fields, self.patterns))

    def about(self, family: str) -> bool:
        """Whether the entry is about this family."""
        return _matches(family, self.family)


_LISTS = ("unsupported", "expected_failures", "ulp")
PATTERNS = ("family", "op", "dtype", "layout", "sizes", "mode")


@dataclass(frozen=True)
class Support:
    """The whole file."""

    unsupported: list[Entry]
    expected_failures: list[Entry]
    ulp: list[Entry]
    random: str

    @classmethod
    def load(cls, path: Path = device_library.SUPPORT) -> Support:
        """Reads the file; a device without one has no gaps."""
        return cls.parse(tomllib.loads(path.read_text()) if path.exists() else {})

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Support:
        """Checks what the file says: a misspelt key or name would silently mean nothing."""
        unknown = set(data) - {*_LISTS, "random"}
        if unknown:
            raise ValueError(f"support.toml: unknown keys {sorted(unknown)}")
        lists = {name: [_entry(name, item) for item in data.get(name, [])] for name in _LISTS}
        random = data.get("random", "philox")
        if random not in ("philox", "own"):
            raise ValueError(f'support.toml: random is "philox" or "own", not {random!r}')
        return cls(**lists, random=random)

    def declared(self, case: Case) -> Entry | None:
        """The entry that says that this case is declined."""
        return next((entry for entry in self.unsupported if entry.matches(case)), None)

    def expected_failure(self, case: Case) -> Entry | None:
        """The entry that says that this case is known to be wrong."""
        return next((entry for entry in self.expected_failures if entry.matches(case)), None)

    def tolerance(self, case: Case, otherwise: float) -> float:
        """The case's tolerance in ulp."""
        wider = [entry.ulp for entry in self.ulp if entry.ulp is not None and entry.matches(case)]
        return max([otherwise, *wider])


def _entry(name: str, item: dict[str, Any]) -> Entry:
    unknown = set(item) - {*PATTERNS, "reason", "ulp", *(["note"] if name == "unsupported" else [])}
    if unknown or ("ulp" in item) != (name == "ulp"):
        raise ValueError(f"support.toml: wrong keys in an entry of {name}: {sorted(item)}")
    if not item.get("reason") or "family" not in item:
        raise ValueError(f"support.toml: an entry of {name} lacks its family or its reason: {item}")
    globs = {name: _globs(item.get(name, "*")) for name in PATTERNS}
    note = item.get("note", "")
    entry = Entry(**globs, reason=item["reason"], ulp=item.get("ulp"), note=note)
    if not any(map(entry.about, device_library.families())):
        raise ValueError(f"support.toml: there is no family {item['family']}")
    return entry


def _globs(given: str | list[str]) -> Globs:
    return (given,) if isinstance(given, str) else tuple(given)
