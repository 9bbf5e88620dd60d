"""The device's support.toml: unsupported calls, a pattern and a reason per line."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import device_library
from kernels import parameters

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

UPDATE = (
    f"{device_library.ENV_PREFIX}_DEVICE={device_library.DEVICE} "
    "pytest device/tests/kernels --write-support"
)


@dataclass(frozen=True)
class Case:
    """A call of the device."""

    family: str
    op: str = "-"
    dtype: str = "-"
    layout: str = "-"
    # The family's arguments: its arrays' sizes and integers such as a dimension, as in
    # "17x33,17x33,1".
    sizes: str = "-"
    # "deterministic" or "free" if the device's answer depends on the mode.
    mode: str = "-"
    # Other arguments and properties of the arrays, as in "contiguous=true order=3 rank=2".
    parameters: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        own = (self.family, self.op, self.dtype, self.layout, self.sizes, self.mode)
        return (*own, self.parameters)

    @cached_property
    def words(self) -> Mapping[str, str]:
        """The names that a pattern of support.toml can have after the family."""
        named = zip(("op", "dtype", "layout", "sizes", "mode"), self.fields[1:], strict=False)
        own = {name: value.replace(" ", "_") for name, value in named if value != "-"}
        return {**own, **parameters.by_name(self.parameters)}

    def called(self, arguments: Sequence[Any], more: Sequence[Any] = ()) -> Case:
        """The case with its family's arguments, in addition to the parameters that the test has
        set.

        `more` are further arguments that are not part of the sizes.
        """
        given = parameters.by_name(self.parameters)
        named = {**parameters.of_call(self.family, arguments, more), **given}
        return replace(self, sizes=parameters.sizes(arguments), parameters=parameters.words(named))

    def __str__(self) -> str:
        return pattern(self.family, self.words)


@dataclass
class Outcome:
    case: Case
    answer: str | None = None  # None if the device supports it, otherwise its reason
    failed: bool = False


def pattern(family: str, words: Mapping[str, str]) -> str:
    """A line of support.toml about cases: "unary op=erf dtype=float16|float32"."""
    return " ".join([family, *(f"{name}={value}" for name, value in words.items())])


def matches(line: str, case: Case) -> bool:
    """Whether a pattern matches this case. A name that the case does not have never matches."""
    family, *words = line.split()
    named = (word.partition("=") for word in words)
    return _fits(family, case.family) and all(
        name in case.words and _fits(globs, case.words[name]) for name, _, globs in named
    )


def _fits(globs: str, value: str) -> bool:
    return any(fnmatchcase(value, glob) for glob in globs.split("|"))


@dataclass(frozen=True)
class Support:
    # By pattern: the reason why a case is unsupported, and a larger tolerance than that of
    # tolerances.py.
    unsupported: Mapping[str, str] = field(default_factory=dict)
    ulp: Mapping[str, float] = field(default_factory=dict)
    random: str = "philox"

    @classmethod
    def load(cls, path: Path = device_library.SUPPORT) -> Support:
        """Reads the file. A device without it supports all calls."""
        data = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
        if unknown := data.keys() - {field.name for field in fields(cls)}:
            raise ValueError(
                f"{path} has unknown keys {sorted(unknown)}; `{UPDATE}` writes it anew"
            )
        return cls(**data)

    def declares(self, case: Case) -> str | None:
        """The pattern that declares this case unsupported."""
        return next((line for line in self.unsupported if matches(line, case)), None)

    def tolerance(self, case: Case, otherwise: float) -> float:
        return max([otherwise, *(ulp for line, ulp in self.ulp.items() if matches(line, case))])
