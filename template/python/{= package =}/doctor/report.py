"""The doctor's findings, and their output as text and JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .._build import NAME


class Status(str, enum.Enum):
    """How the backend handles an interface of PyTorch."""

    WORKS = "works"
    DECLINED = "declined"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """The status of one surface or virtual function, the reason, and its page in ``docs``."""

    section: str
    name: str
    status: Status
    detail: str = ""
    page: str = ""


@dataclass(frozen=True)
class Report:
    """The findings. Only ``surfaces`` and ``audit`` affect :attr:`healthy`.

    ``libraries`` maps names to paths. ``devices`` are the properties of each device, with sizes in
    bytes.
    """

    environment: Mapping[str, str]
    libraries: Mapping[str, str]
    devices: Sequence[Mapping[str, object]]
    surfaces: Sequence[Finding]
    audit: Sequence[Finding]

    @property
    def healthy(self) -> bool:
        """Whether nothing is missing."""
        return all(item.status is not Status.MISSING for item in (*self.surfaces, *self.audit))

    def json(self) -> str:
        """Return all fields as JSON."""
        return json.dumps(dataclasses.asdict(self) | {"healthy": self.healthy}, indent=2)

    def text(self) -> str:
        """Return the report as text. The audit lists declined and missing functions only."""
        devices = [
            (
                f"{NAME}:{index}",
                ", ".join(f"{key} {_value(value)}" for key, value in device.items()),
            )
            for index, device in enumerate(self.devices)
        ]
        parts = [
            "environment\n" + table(self.environment.items()),
            "libraries\n" + table(self.libraries.items()),
            "devices\n" + table(devices),
            f"surfaces: {_counts('work', self.surfaces)}\n" + table(map(_row, self.surfaces)),
            f"virtual functions: {_counts('overridden', self.audit)}\n"
            + table(_by_reason(self.audit)),
        ]
        return "\n\n".join(parts)


def table(rows: Iterable[Sequence[str]]) -> str:
    """Align all columns but the last."""
    kept = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)][:-1]
    padded = (
        [*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]
        for row in kept
    )
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in padded)


def _row(item: Finding) -> tuple[str, ...]:
    page = f"docs/{item.page}"
    detail = f"{item.detail} ({page})" if item.detail else page
    return item.status.value, item.section, item.name, detail


def _by_reason(audit: Iterable[Finding]) -> list[tuple[str, ...]]:
    """Return a row for each reason, and a row for each missing virtual function."""
    grouped: dict[Finding, list[str]] = {}
    for item in audit:
        if item.status is Status.DECLINED:
            grouped.setdefault(dataclasses.replace(item, name=""), []).append(item.name)
        elif item.status is Status.MISSING:
            grouped[item] = [item.name]
    several = {item: f"{len(names)} functions" for item, names in grouped.items() if names[1:]}
    return [
        _row(dataclasses.replace(item, name=several.get(item, names[0])))
        for item, names in grouped.items()
    ]


def _counts(good: str, findings: Iterable[Finding]) -> str:
    counted = Counter(item.status for item in findings)
    words = {Status.WORKS: good, Status.DECLINED: "declined", Status.MISSING: "missing"}
    return ", ".join(f"{counted[status]} {word}" for status, word in words.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= 1 << 20:
        return f"{value / (1 << 30):.1f} GiB"
    return str(value)
