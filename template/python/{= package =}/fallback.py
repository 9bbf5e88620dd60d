"""The CPU fallback: its policy and its statistics."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple, TextIO

from . import _C, _absent

__all__ = [
    "Fallback",
    "count_fallbacks",
    "fallback_policy",
    "fallback_report",
    "fallback_stats",
    "reset_fallback_stats",
    "set_fallback_policy",
]


_C.set_fallback_hints(_absent.fallback_hints())
_resets = 0


class Fallback(NamedTuple):
    """The cost of one operator on the CPU."""

    calls: int
    bytes: int
    """Bytes copied between the device and the host."""
    seconds: float
    """Seconds on the CPU for copies and the operator itself, without waits for the device."""
    reason: str
    """``no kernel``, or why the kernel does not support the calls, most frequent first."""
    reasons: Mapping[str, int] = MappingProxyType({})
    """All reasons, with the number of calls for each."""
    copying: float = 0.0
    """The part of ``seconds`` for copies."""
    waiting: float = 0.0
    """Seconds that the calls waited for earlier work of the device. Not part of ``seconds``."""


class _Record(NamedTuple):
    """The counts of one operator. ``reasons`` maps each reason to its number of calls."""

    calls: int
    bytes: int
    seconds: float
    copying: float
    waiting: float
    reasons: dict[str, int]

    def since(self, then: _Record) -> _Record:
        """Return the difference from ``then``."""
        added = {name: n - then.reasons.get(name, 0) for name, n in self.reasons.items()}
        return _Record(
            self.calls - then.calls,
            self.bytes - then.bytes,
            self.seconds - then.seconds,
            self.copying - then.copying,
            self.waiting - then.waiting,
            {name: n for name, n in added.items() if n > 0},
        )

    def public(self) -> Fallback:
        ranked = dict(sorted(self.reasons.items(), key=lambda item: (-item[1], item[0])))
        reason = "; ".join(ranked)
        return Fallback(
            self.calls, self.bytes, self.seconds, reason, ranked, self.copying, self.waiting
        )


def _records() -> dict[str, _Record]:
    return {name: _Record(*record) for name, record in _C.fallback_records().items()}


def fallback_stats() -> dict[str, Fallback]:
    """Return the fallbacks since the start or the last reset, by operator."""
    return {name: record.public() for name, record in _records().items()}


def reset_fallback_stats() -> None:
    """Reset the fallback statistics to zero."""
    global _resets
    _C.reset_fallback_records()
    _resets += 1


@contextmanager
def count_fallbacks() -> Iterator[dict[str, Fallback]]:
    """Context manager that returns a dictionary, and fills it on exit with the block's fallbacks.

    Counts the fallbacks of all threads. Blocks may be nested. :func:`reset_fallback_stats` inside a
    block discards the earlier counts.
    """
    resets, before = _resets, _records()
    within: dict[str, Fallback] = {}
    try:
        yield within
    finally:
        nothing = _Record(0, 0, 0.0, 0.0, 0.0, {})
        before = before if resets == _resets else {}
        for name, now in _records().items():
            added = now.since(before.get(name, nothing))
            if added.calls > 0:
                within[name] = added.public()


def fallback_policy() -> str:
    """Return the current policy, in the form that :func:`set_fallback_policy` accepts."""
    return _C.fallback_policy()


def set_fallback_policy(policy: str) -> str:
    """Set the policy for operators that would run on the CPU, and return the previous policy.

    Args:
        policy: ``warn`` (once per operator), ``silent`` or ``error``, then exceptions after commas,
            such as ``error:aten::sort`` or ``silent:aten::unique*``. The last match applies.

    Raises:
        ValueError: ``policy`` does not have this form.
    """
    before = _C.fallback_policy()
    _C.set_fallback_policy(policy)
    return before


def fallback_report(
    stats: dict[str, Fallback] | None = None, *, file: TextIO | None = None
) -> None:
    """Print which kernels to write next: the operators that ran on the CPU, slowest first.

    Args:
        stats: statistics from :func:`count_fallbacks`; the default is :func:`fallback_stats`.
        file: the output; the default is standard output.
    """
    stats = fallback_stats() if stats is None else stats
    out = file or sys.stdout
    if not stats:
        print("Nothing ran on the CPU.", file=out)
        return
    ranked = sorted(stats.items(), key=lambda item: (-item[1].seconds, item[0]))
    total = sum(record.seconds for record in stats.values()) or 1.0
    width = max(len("operator"), *(len(name) for name in stats))
    head = f"  {'operator':{width}}  {'calls':>8}  {'CPU ms':>10}  {'share':>6}  {'copy ms':>10}"
    head += f"  {'MB moved':>10}  {'wait ms':>10}  "
    print("Write these kernels next:", f"{head}reason (calls)", sep="\n", file=out)
    for name, record in ranked:
        line = f"  {name:{width}}  {record.calls:>8}  {record.seconds * 1e3:>10.2f}"
        line += f"  {record.seconds / total:>6.1%}  {record.copying * 1e3:>10.2f}"
        line += f"  {record.bytes / 1e6:>10.2f}  {record.waiting * 1e3:>10.2f}  "
        for reason in _reasons(record):
            print(f"{line}{reason}", file=out)
            line = " " * len(head)
    waiting = sum(record.waiting for record in stats.values())
    if waiting > 0:
        print(
            f"These calls also waited {waiting * 1e3:.2f} ms for earlier work of the device. Their "
            "kernels would not shorten this time: torch.profiler shows the work.",
            file=out,
        )


def _reasons(record: Fallback) -> list[str]:
    return [f"{reason} ({calls})" for reason, calls in record.reasons.items()] or [record.reason]
