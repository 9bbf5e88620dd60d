"""The surfaces: functions that PyTorch expects of a backend, and how they are tested."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .._absent import missing_feature_hint
from .._build import NAME
from .report import Finding, Status

backend: Any = torch.get_device_module(NAME)

PAGES = {
    "module": "privateuse1-api.md",
    "methods": "privateuse1-api.md",
    "guard": "architecture.md",
    "hooks": "architecture.md",
    "allocator": "architecture.md",
}
FEATURE_PAGES = {
    "generator": ("rng", "features/rng.md"),
    "autocast": ("amp", "features/amp.md"),
    "distributed": ("distributed", "features/distributed.md"),
    "storage": ("storage", "features/storage.md"),
    "sharing": ("ipc", "features/ipc.md"),
    "graphs": ("graphs", "features/graphs.md"),
    "extensions": ("extension", "features/extension.md"),
    "vllm": ("vllm", "features/vllm.md"),
}
"""The feature of a section, and its page."""


class Declined(Exception):
    """A surface is not supported on purpose; the text is the reason."""


@dataclass(frozen=True)
class Surface:
    """One function that PyTorch expects of a backend, and a test of it.

    ``attempt`` raises if the test fails. If ``declined`` has a reason, the failure is expected.
    """

    section: str
    name: str
    attempt: Callable[[], None]
    declined: str
    feature: str | None


SURFACES: list[Surface] = []
"""The checks that the modules of ``probes`` declare, in the order of the report."""


def surface(
    section: str, name: str, *, declined: str = "", feature: str | None = None
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorator that registers the test of a surface, see :class:`Surface`.

    Args:
        section: the part of PyTorch.
        name: the tested attributes, virtual functions or functions.
        declined: why the test is expected to fail.
        feature: the feature that provides the surface; without it the surface is declined.
    """

    def declare(attempt: Callable[[], None]) -> Callable[[], None]:
        SURFACES.append(Surface(section, name, attempt, declined, feature))
        return attempt

    return declare


def expect(actual: object, expected: object = True) -> None:
    """Raise unless the two are equal."""
    if actual != expected:
        raise RuntimeError(f"expected {expected!r}, got {actual!r}")


def page_on(section: str) -> str:
    """Return the page of ``docs`` on a section, or the index if this project does not have it."""
    if section in FEATURE_PAGES:
        feature, page = FEATURE_PAGES[section]
        return page if missing_feature_hint(feature) is None else "features/index.md"
    return PAGES.get(section, "features/doctor.md")


def attempt(item: Surface) -> Finding:
    """Test a surface and return the result."""
    status, detail = Status.DECLINED, missing_feature_hint(item.feature) or ""
    if not detail:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                item.attempt()
            status = Status.WORKS
        except Declined as reason:
            detail = str(reason)
        except Exception as error:
            status = Status.DECLINED if item.declined else Status.MISSING
            first = (str(error).splitlines() or ["no text"])[0]
            detail = item.declined or f"{type(error).__name__}: {first}"
    return Finding(item.section, item.name, status, detail, page_on(item.section))
