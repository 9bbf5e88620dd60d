"""Computes the lines of `unsupported` in support.toml from a run: few lines, general ones first."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from kernels.support import Case, Outcome, Support, matches, pattern

# The names of a line and their values.
Words = tuple[tuple[str, str], ...]

# The maximum number of names in a line, unless more are needed.
_MOST = 3
# Likely reasons come first. Sizes come last, because they match few other cases.
_FIRST = ("dtype", "op", "contiguous", "rank")
_LAST = ("layout", "mode")
_TABLE = "[unsupported]"


def unsupported_lines(outcomes: Collection[Outcome]) -> tuple[dict[str, str], list[Case]]:
    """Return patterns with reasons. They match each unsupported case and no working one.

    Also return the cases that no pattern can match: those that are unsupported only at times.
    """
    lines: dict[str, str] = {}
    unclear: list[Case] = []
    for family in sorted({outcome.case.family for outcome in outcomes}):
        own = [outcome for outcome in outcomes if outcome.case.family == family]
        unsupported = {outcome.case: outcome.answer for outcome in own if outcome.answer}
        found, left = _found(unsupported, [outcome.case for outcome in own if not outcome.answer])
        lines |= {pattern(family, dict(words)): reason for words, reason in _merged(found)}
        unclear += left
    return lines, unclear


def _found(
    unsupported: dict[Case, str], working: Sequence[Case]
) -> tuple[list[tuple[Words, str]], list[Case]]:
    """Words that separate unsupported cases from working ones, and the cases without such words."""
    found: list[tuple[Words, str]] = []
    left = list(unsupported)
    for names in _choices({name for case in unsupported for name in case.words}):
        if not left:
            break
        works = {_words(case, names) for case in working}
        reasons: dict[Words, set[str]] = defaultdict(set)
        rest = []
        for case in left:
            words = _words(case, names)
            if len(words) < len(names) or words in works:
                rest.append(case)
            else:
                reasons[words].add(unsupported[case])
        found += [(words, "; ".join(sorted(said))) for words, said in reasons.items()]
        left = rest
    return found, left


def _choices(names: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Combinations of names: few names first, then sizes, then all names."""
    order = [*_FIRST, *sorted({*names} - {*_FIRST, *_LAST, "sizes"}), *_LAST]
    order = [name for name in order if name in names]
    for count in range(_MOST + 1):
        yield from itertools.combinations(order, count)
    for count in range(_MOST):
        for some in itertools.combinations(order, count):
            yield (*some, "sizes")
    yield (*order, "sizes")


def _words(case: Case, names: Sequence[str]) -> Words:
    return tuple((name, case.words[name]) for name in names if name in case.words)


def _merged(found: Sequence[tuple[Words, str]]) -> list[tuple[Words, str]]:
    """Merges lines that differ only in the value of one name."""
    for name in dict.fromkeys(name for words, _ in found for name, _ in words):
        others = [(words, reason) for words, reason in found if name not in dict(words)]
        values: dict[tuple[Words, str], list[str]] = defaultdict(list)
        for words, reason in found:
            rest = tuple(word for word in words if word[0] != name)
            values[rest, reason] += [value for other, value in words if other == name]
        found = others + [
            ((*rest, (name, "|".join(sorted(some)))), reason)
            for (rest, reason), some in values.items()
            if some
        ]
    return list(found)


def rewritten(text: str, support: Support, outcomes: Collection[Outcome]) -> tuple[str, list[Case]]:
    """Return the new text of a support.toml after a run, and the cases that it cannot describe.

    The text before the table is kept, and so are lines about families that the run did not test. An
    existing line keeps its reason.
    """
    lines, unclear = unsupported_lines(outcomes)
    seen = {Case(outcome.case.family) for outcome in outcomes}
    others = {
        line: reason
        for line, reason in support.unsupported.items()
        if not any(matches(line.split()[0], family) for family in seen)
    }
    said = {**others, **{line: support.unsupported.get(line, lines[line]) for line in lines}}
    head = text.partition(_TABLE)[0]
    written = [f"{json.dumps(line)} = {json.dumps(said[line])}" for line in sorted(said)]
    return head + "\n".join([_TABLE, *written]) + "\n", unclear
