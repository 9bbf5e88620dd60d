"""What the device under test says it does not do: its support.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import device_library
from kernels import parameters

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
    # What else the family got and what its arrays are like, as in "contiguous=true order=3 rank=2".
    parameters: str = ""

    @property
    def patterned(self) -> tuple[str, ...]:
        """What the globs of an entry's own fields are matched with."""
        return (self.family, self.op, self.dtype, self.layout, self.sizes, self.mode)

    @property
    def fields(self) -> tuple[str, ...]:
        """What a case is made of."""
        return (*self.patterned, self.parameters)

    @property
    def by_name(self) -> Mapping[str, str]:
        """The parameters."""
        return parameters.by_name(self.parameters)

    def called(self, arguments: Sequence[Any], more: Sequence[Any] = ()) -> Case:
        """The case with what its family is called with, beside the parameters that a test has named.

        `more` are further arguments, which the sizes do not show.
        """
        named = {**parameters.of_call(self.family, arguments, more), **self.by_name}
        return replace(self, sizes=parameters.sizes(arguments), parameters=parameters.words(named))

    def __str__(self) -> str:
        named = f" ({self.parameters})" if self.parameters else ""
        return " ".join(self.patterned) + named


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    answer: str | None = None  # None if the device does it, otherwise its reason
    ulp: float = 0.0  # the largest error, where results are compared in ulp
    failed: bool = False


# A glob or a limit such as ">4", or several of which the last one that matches counts; behind a "!" it says no.
Globs = tuple[str, ...]


def _matches(value: str, globs: Globs) -> bool:
    says = [
        not glob.startswith("!") for glob in globs if parameters.matches(value, glob.lstrip("!"))
    ]
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
    parameters: tuple[tuple[str, Globs], ...] = ()  # by name, in their order

    def __str__(self) -> str:
        named = [f"{name}={','.join(globs)}" for name, globs in self.parameters]
        return " ".join([*(",".join(globs) for globs in self.patterns), *named])

    @property
    def patterns(self) -> tuple[Globs, ...]:
        """The globs, in the order of a case's fields."""
        return (self.family, self.op, self.dtype, self.layout, self.sizes, self.mode)

    @property
    def about_sizes(self) -> bool:
        """Whether it may be about slow cases alone."""
        named = {name for name, _ in self.parameters}
        return self.sizes != ("*",) or not named.isdisjoint(parameters.SIZES)

    def matches(self, case: Case) -> bool:
        """Whether the entry is about this case. A parameter that the case lacks fits nothing."""
        return all(map(_matches, case.patterned, self.patterns)) and all(
            name in case.by_name and _matches(case.by_name[name], globs)
            for name, globs in self.parameters
        )

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
        return cls.parse(tomllib.loads(path.read_text("utf-8")) if path.exists() else {})

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
    own = {"unsupported": "note", "ulp": "ulp"}.get(name, "reason")
    unknown = set(item) - {*PATTERNS, "parameters", "reason", own}
    if unknown or ("ulp" in item) != (name == "ulp"):
        raise ValueError(f"support.toml: wrong keys in an entry of {name}: {sorted(item)}")
    if not item.get("reason") or "family" not in item:
        raise ValueError(f"support.toml: an entry of {name} lacks its family or its reason: {item}")
    globs = {name: _globs(item.get(name, "*")) for name in PATTERNS}
    note = item.get("note", "")
    named = item.get("parameters", {})
    if not isinstance(named, dict):
        raise ValueError(f"support.toml: parameters are a table, as in {{ order = 2 }}: {item}")
    also = tuple((name, _globs(value)) for name, value in sorted(named.items()))
    entry = Entry(**globs, reason=item["reason"], ulp=item.get("ulp"), note=note, parameters=also)
    if not any(map(entry.about, device_library.families())):
        raise ValueError(f"support.toml: there is no family {item['family']}")
    return entry


def _globs(given: Any) -> Globs:
    return tuple(map(parameters.word, given if isinstance(given, list) else [given]))
